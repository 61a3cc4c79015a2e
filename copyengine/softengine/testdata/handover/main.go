// Command handover lets a software engine copy a buffer when its producer opens
// the gate, and checks what arrives. With -late the producer writes once more
// after it has opened the gate: a data race that the race detector must see.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/triggeredplans/sluice/copyengine/sdma"
	"github.com/triggeredplans/sluice/copyengine/softengine"
	"github.com/triggeredplans/sluice/hip"
)

const (
	bytes = 4096
	gate  = 2 * bytes
	done  = 2*bytes + 64
)

func main() {
	late := flag.Bool("late", false, "write behind the gate")
	flag.Parse()
	if err := run(*late); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("delivered")
}

func run(late bool) error {
	platform, err := hip.Open("host")
	if err != nil {
		return err
	}
	device, err := platform.Device(0)
	if err != nil {
		return err
	}
	mem, err := device.Alloc(2*bytes + 128)
	if err != nil {
		return err
	}
	defer mem.Free()
	read, write, bell := new(hip.Word), new(hip.Word), new(hip.Word)
	buf := make([]byte, sdma.MinRingBytes)
	ring, err := sdma.NewRing(buf, read, write, sdma.WordDoorbell{Word: bell})
	if err != nil {
		return err
	}
	engine, err := softengine.Start(softengine.Config{Ring: buf, Read: read, Doorbell: bell})
	if err != nil {
		return err
	}
	defer engine.Stop()

	var p sdma.Program
	at := mem.Addr()
	if err := errors.Join(p.Poll(at+gate, 0), p.Copy(at, at+bytes, bytes, 1, bytes, bytes), p.Signal(at+done, 1)); err != nil {
		return err
	}
	src, dst := mem.Bytes(0, bytes), mem.Bytes(bytes, bytes)
	for round := byte(1); round <= 20; round++ {
		p.SetRound(uint32(round))
		if _, err := ring.Append(&p); err != nil {
			return err
		}
		ring.Ring()
		for i := range src {
			src[i] = round + byte(i)
		}
		mem.Word(gate).Store(uint64(round))
		if late {
			src[bytes/2] = round + bytes/2%256 // the same value: only the order is wrong
		}
		arrived := func(v uint64) bool { return v == uint64(round) }
		if err := hip.NewWaiter().Await(context.Background(), mem.Word(done), arrived, nil); err != nil {
			return err
		}
		for i := range dst {
			if dst[i] != round+byte(i) {
				return fmt.Errorf("round %d: byte %d is %d", round, i, dst[i])
			}
		}
	}
	return nil
}
