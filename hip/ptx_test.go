package hip

import (
	"bytes"
	"os"
	"testing"
)

func TestParametersAreReadFromPTX(t *testing.T) {
	module := []byte(`
.version 8.3
.target sm_90
.visible .entry none()
{ ret; }
.visible .entry some(
	.param .u64 some_param_0,
	.param .b32 some_param_1,
	.param .align 8 .b8 some_param_2[24],
	.param .u64 .ptr .global .align 16 some_param_3,
	.param .f64 some_param_4
)
{ ret; }
.entry $other(.param .u16 x) { ret; }
`)
	got := ptxParameters(module)
	for name, want := range map[string][]byte{"none": {}, "some": {8, 4, 24, 8, 8}, "$other": {2}} {
		if sizes, ok := got[name]; !ok || !bytes.Equal(sizes, want) {
			t.Errorf("%s takes %v, want %v", name, sizes, want)
		}
	}
	if len(got) != 3 {
		t.Errorf("%d kernels are found, there are 3", len(got))
	}
	for _, other := range [][]byte{nil, []byte("no module"), append([]byte{0}, module...)} {
		if ptxParameters(other) != nil {
			t.Errorf("%d bytes that are no PTX have kernels", len(other))
		}
	}
}

func TestTheBuiltInKernelsParametersAreKnown(t *testing.T) {
	module, err := os.ReadFile("../kernels/embedded/sm_90.ptx")
	if err != nil {
		t.Fatal(err)
	}
	got := ptxParameters(module)
	for name, n := range map[string]int{"script": 2, "fill": 8, "tiled": 11, "consumer": 5, "matmul": 11, "progress": 3, "evaluate": 5} {
		if want := bytes.Repeat([]byte{8}, n); !bytes.Equal(got[name], want) {
			t.Errorf("%s takes %v, want %d words", name, got[name], n)
		}
	}
}
