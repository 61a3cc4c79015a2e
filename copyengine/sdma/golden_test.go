package sdma

import (
	"encoding/json"
	"os"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// vector is one golden packet of testdata/sdma-packets.json.
type vector struct {
	Packet, Func, Op     string
	Src, Dst, Addr       string
	Value                any
	Bytes, Width, Height int64
	SrcPitch             int64 `json:"src_pitch"`
	DstPitch             int64 `json:"dst_pitch"`
	Mask                 string
	Interval             uint16
	RetryCount           uint16 `json:"retry_count"`
	Dwords               []string
}

func number(t *testing.T, s any) uint64 {
	t.Helper()
	switch v := s.(type) {
	case float64:
		return uint64(v)
	case string:
		n, err := strconv.ParseUint(v, 0, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	t.Fatalf("%v is no number", s)
	return 0
}

// packet is what the vector says in words.
func (v *vector) packet(t *testing.T) Packet {
	t.Helper()
	switch v.Packet {
	case "COPY_LINEAR":
		return Packet{Op: OpCopyLinear, Size: LinearBytes, Copy: Window{
			Src: number(t, v.Src), Dst: number(t, v.Dst), SrcPitch: v.Bytes, DstPitch: v.Bytes, Width: v.Bytes, Height: 1}}
	case "COPY_LINEAR_SUB_WINDOW_LARGE":
		return Packet{Op: OpCopyWindow, Size: WindowBytes, Copy: Window{
			Src: number(t, v.Src), Dst: number(t, v.Dst), SrcPitch: v.SrcPitch, DstPitch: v.DstPitch, Width: v.Width, Height: v.Height}}
	case "POLL_REGMEM":
		if v.Func != ">=" {
			t.Fatalf("unknown function %q", v.Func)
		}
		return Packet{Op: OpPoll, Size: PollBytes, Poll: Poll{
			Addr: number(t, v.Addr), Func: GreaterEqual, Ref: uint32(number(t, v.Value)), Mask: uint32(number(t, v.Mask)), Interval: v.Interval, Retries: v.RetryCount}}
	case "ATOMIC":
		if v.Op != "ADD_RTN_64" {
			t.Fatalf("unknown operation %q", v.Op)
		}
		return Packet{Op: OpAtomic, Size: AtomicBytes, Atomic: Atomic{Op: Add64, Addr: number(t, v.Addr), Operand: number(t, v.Value)}}
	case "FENCE":
		return Packet{Op: OpFence, Size: FenceBytes, Addr: number(t, v.Addr), Value: uint32(number(t, v.Value))}
	}
	t.Fatalf("unknown packet %q", v.Packet)
	return Packet{}
}

func golden(t *testing.T) []vector {
	t.Helper()
	raw, err := os.ReadFile("testdata/sdma-packets.json")
	if err != nil {
		t.Fatal(err)
	}
	var vs []vector
	if err := json.Unmarshal(raw, &vs); err != nil {
		t.Fatal(err)
	}
	if len(vs) == 0 {
		t.Fatal("there are no golden packets")
	}
	return vs
}

func TestGoldenPacketsEncodeAndDecodeExactly(t *testing.T) {
	for i, v := range golden(t) {
		want := v.packet(t)
		var bytes []byte
		for _, d := range v.Dwords {
			bytes = le.AppendUint32(bytes, uint32(number(t, d)))
		}
		got, err := want.Append(nil)
		if diff := cmp.Diff(bytes, got); err != nil || diff != "" {
			t.Errorf("packet %d (%s) encodes differently (error %v):\n%s", i, v.Packet, err, diff)
		}
		p, err := Decode(bytes)
		if diff := cmp.Diff(want, p); err != nil || diff != "" {
			t.Errorf("packet %d (%s) decodes differently (error %v):\n%s", i, v.Packet, err, diff)
		}
	}
}

func TestAProgramsPacketsAreTheGoldenOnes(t *testing.T) {
	for i, v := range golden(t) {
		p, want := v.packet(t), []byte(nil)
		for _, d := range v.Dwords {
			want = le.AppendUint32(want, uint32(number(t, d)))
		}
		var prog Program
		var err error
		switch p.Op {
		case OpCopyLinear, OpCopyWindow:
			c := p.Copy
			err = prog.Copy(c.Src, c.Dst, c.Width, c.Height, c.SrcPitch, c.DstPitch)
		case OpPoll:
			err = prog.Poll(p.Poll.Addr, 12345)
			prog.SetRound(p.Poll.Ref)
		case OpAtomic:
			err = prog.Signal(p.Atomic.Addr, p.Atomic.Operand)
		case OpFence:
			err = prog.Fence(p.Addr, p.Value)
		}
		if diff := cmp.Diff(want, copied(&prog)); err != nil || diff != "" {
			t.Errorf("packet %d (%s) differs (error %v):\n%s", i, v.Packet, err, diff)
		}
	}
}
