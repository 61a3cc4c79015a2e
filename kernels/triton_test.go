package kernels_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/triggeredplans/sluice/hip"
	"github.com/triggeredplans/sluice/internal/fakecuda"
	"github.com/triggeredplans/sluice/kernels"
	"pgregory.net/rapid"
)

// moduleDevice is a GPU that loads modules: a stand-in for one, unless the
// environment names a driver.
func moduleDevice(t *testing.T) hip.Device {
	t.Helper()
	if os.Getenv(hip.CUDASetting) == "" {
		lib, err := fakecuda.Library()
		if err != nil {
			t.Skip(err)
		}
		t.Setenv(hip.CUDASetting, lib)
	}
	p, err := hip.Open("nvidia")
	if err != nil {
		t.Skip(err)
	}
	d, err := p.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(os.Getenv(hip.CUDASetting), "fakecuda") {
		t.Skip("the module is one that only the stand-in loads")
	}
	return d
}

// anyModule is a module as far as the stand-in looks.
const anyModule = ".version 8.3\n"

func sumOf(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// order is the built-in one in the form that build.py exports.
const order = `{"function": "tile_of", "constants": {"group": 8}, "lets": [
	["in_group", ["*", "group", "tiles_n"]],
	["top", ["*", ["/", "step", "in_group"], "group"]],
	["rows", ["min", ["-", "tiles_m", "top"], "group"]],
	["rest", ["%", "step", "in_group"]]],
	"tile": ["+", ["*", ["+", "top", ["%", "rest", "rows"]], "tiles_n"], ["/", "rest", "rows"]]}`

// described is a folder with one kernel whose description has been changed.
func described(t *testing.T, change func(d map[string]any)) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "fill.ptx"), []byte(anyModule), 0o644); err != nil {
		t.Fatal(err)
	}
	d := map[string]any{
		"name": "filler", "entry": "fill", "arch": "sm_90", "language": "triton", "compiler": "triton 3.6.0",
		"warps": 1, "warp_size": 4, "shared": 65536,
		"scratch": map[string]any{"bytes": 256, "align": 128},
		"arguments": []any{
			map[string]any{"name": "handle", "type": "*i64", "multiple": 16},
			map[string]any{"name": "n", "type": "i32", "multiple": 16},
			map[string]any{"name": "u", "type": "u32", "multiple": 1},
			map[string]any{"name": "wide", "type": "i64", "multiple": 1},
			map[string]any{"name": "x", "type": "fp32", "multiple": 1},
		},
		"hidden":    []any{"global_scratch", "profile_scratch"},
		"constants": map[string]any{"BLOCK_M": 128, "GROUP": 8},
		"order":     json.RawMessage(order),
		"binary":    map[string]any{"file": "fill.ptx", "sha256": sumOf(anyModule)},
	}
	if change != nil {
		change(d)
	}
	text, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "fill.json"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func load(t *testing.T, change func(d map[string]any)) *kernels.TritonKernel {
	t.Helper()
	all, err := kernels.LoadTriton(moduleDevice(t), described(t, change))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := all.Unload(); err != nil {
			t.Error(err)
		}
	})
	k, err := all.Kernel("filler")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestATritonKernelIsWhatItsDescriptionSays(t *testing.T) {
	k := load(t, nil)
	if k.Name != "filler" || k.Loaded == nil || k.Loaded.Name != "fill" || k.Language() != "triton" || k.Compiler() != "triton 3.6.0" {
		t.Errorf("the kernel is %+v, loaded as %+v", k.Kernel, k.Loaded)
	}
	if want := []string{"handle", "n", "u", "wide", "x"}; !slices.Equal(k.Args, want) {
		t.Errorf("its arguments are %v, want %v", k.Args, want)
	}
	if k.Constants()["BLOCK_M"] != 128 || k.Order().Function() != "tile_of" || k.ScratchBytes(3) != 3*256 {
		t.Errorf("constants %v, order %s, scratch %d", k.Constants(), k.Order().Function(), k.ScratchBytes(3))
	}
}

func TestTritonArgumentsGetTheirSizesAndThoseThatTritonAdds(t *testing.T) {
	k := load(t, func(d map[string]any) { d["scratch"] = map[string]any{"bytes": 0, "align": 1} })
	grid, args, err := k.Launch(7, nil, uint64(4096), 32, 5, 1<<40, float32(2))
	if err != nil {
		t.Fatal(err)
	}
	if want := (hip.Grid{Blocks: 7, Threads: 4}); grid != want {
		t.Errorf("the grid is %+v, want %+v", grid, want)
	}
	if want := []any{uint64(4096), int32(32), uint32(5), 1 << 40, float32(2), uint64(0), uint64(0)}; !reflect.DeepEqual(args, want) {
		t.Errorf("the arguments are %#v, want %#v", args, want)
	}
}

func TestTritonArgumentsThatCannotBeAreRefusedByName(t *testing.T) {
	k := load(t, nil)
	for _, c := range []struct {
		argument string
		args     []any
	}{
		{"list", []any{uint64(0), 16}},
		{"handle", []any{3, 16, 0, 0, float32(0)}},
		{"n", []any{uint64(0), 17, 0, 0, float32(0)}},
		{"n", []any{uint64(0), 1 << 36, 0, 0, float32(0)}},
		{"u", []any{uint64(0), 16, -1, 0, float32(0)}},
		{"u", []any{uint64(0), 16, math.MaxUint32 + 1, 0, float32(0)}},
		{"x", []any{uint64(0), 16, 0, 0, 1}},
		{"scratch", []any{uint64(0), 16, 0, 0, float32(0)}},
	} {
		_, _, err := k.Launch(1, nil, c.args...)
		var e *kernels.ArgumentError
		if !errors.As(err, &e) || e.Argument != c.argument || e.Kernel != "filler" {
			t.Errorf("%v: error %v, want one about argument %s", c.args, err, c.argument)
		}
	}
}

func TestADescriptionThatCannotBeIsRefused(t *testing.T) {
	dev := moduleDevice(t)
	for says, change := range map[string]func(d map[string]any){
		"none may be empty":         func(d map[string]any) { d["entry"] = "" },
		"0 warps":                   func(d map[string]any) { d["warps"] = 0 },
		"-1 bytes of scratch":       func(d map[string]any) { d["scratch"] = map[string]any{"bytes": -1} },
		"no hidden argument":        func(d map[string]any) { d["hidden"] = []any{} },
		`hidden argument "stream"`:  func(d map[string]any) { d["hidden"] = []any{"global_scratch", "stream"} },
		`the type "i7"`:             func(d map[string]any) { d["arguments"] = []any{map[string]any{"name": "a", "type": "i7"}} },
		"no kernel for sm_90":       func(d map[string]any) { d["arch"] = "gfx942" },
		"the description says":      func(d map[string]any) { d["binary"] = map[string]any{"file": "fill.ptx", "sha256": "00"} },
		"other.ptx":                 func(d map[string]any) { d["binary"] = map[string]any{"file": "other.ptx"} },
		"NOT_FOUND":                 func(d map[string]any) { d["entry"] = "nosuch" },
		"INVALID":                   func(d map[string]any) { d["shared"] = 1 << 20 },
		`nothing is called "tiles"`: func(d map[string]any) { d["order"] = json.RawMessage(`{"tile": "tiles"}`) },
		`"pow" is no operation`:     func(d map[string]any) { d["order"] = json.RawMessage(`{"tile": ["pow", 1, 2]}`) },
		"is no number, name or":     func(d map[string]any) { d["order"] = json.RawMessage(`{"tile": ["+", 1]}`) },
		"null is no number, name":   func(d map[string]any) { d["order"] = json.RawMessage(`{"tile": ["+", 1, null]}`) },
		"cannot unmarshal string":   func(d map[string]any) { d["warps"] = "one" },
		"order f, rows: nothing is": func(d map[string]any) {
			d["order"] = json.RawMessage(`{"function": "f", "lets": [["rows", "rows"]], "tile": 1}`)
		},
	} {
		_, err := kernels.LoadTriton(dev, described(t, change))
		var e *kernels.TritonError
		if !errors.As(err, &e) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: error %v", says, err)
		}
	}
	junk := described(t, func(d map[string]any) { d["binary"] = map[string]any{"file": "fill.ptx", "sha256": sumOf("abc")} })
	if err := os.WriteFile(filepath.Join(junk, "fill.ptx"), []byte("abc"), 0o644); err != nil {
		t.Fatal(err)
	}
	var f *kernels.FormatError
	if _, err := kernels.LoadTriton(dev, junk); !errors.As(err, &f) {
		t.Errorf("3 bytes as a module: error %v", err)
	}
}

func TestAFolderWithoutKernelsAndAKernelThatIsNotThereAreErrors(t *testing.T) {
	dev := moduleDevice(t)
	var e *kernels.TritonError
	if _, err := kernels.LoadTriton(dev, t.TempDir()); !errors.As(err, &e) {
		t.Errorf("an empty folder: error %v", err)
	}
	dir := described(t, nil)
	text, err := os.ReadFile(filepath.Join(dir, "fill.json"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := kernels.LoadTriton(dev, dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := all.Kernel("nosuch"); !errors.As(err, &e) || !strings.Contains(err.Error(), "[filler]") {
		t.Errorf("a kernel that is not there: error %v", err)
	}
	if err := all.Unload(); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "again.json"), text, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := kernels.LoadTriton(dev, dir); !errors.As(err, &e) || !strings.Contains(err.Error(), "another kernel filler") {
		t.Errorf("one name twice: error %v", err)
	}
}

func TestTheHostLoadsNoTritonKernels(t *testing.T) {
	if _, err := kernels.LoadTriton(hostDevice(t), described(t, nil)); !errors.Is(err, hip.ErrNoModules) {
		t.Errorf("error %v, want ErrNoModules", err)
	}
}

func TestAnExportedOrderIsTheFunctionItWasMadeFrom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, n := rapid.IntRange(1, 40).Draw(t, "m"), rapid.IntRange(1, 40).Draw(t, "n")
		group := rapid.IntRange(1, 45).Draw(t, "group")
		var o kernels.Order
		if err := json.Unmarshal([]byte(strings.Replace(order, `"group": 8`, fmt.Sprintf(`"group": %d`, group), 1)), &o); err != nil {
			t.Fatal(err)
		}
		for step := -1; step <= m*n; step++ {
			if got, want := o.Tile(step, m, n), kernels.TileOf(step, m, n, group); got != want {
				t.Fatalf("step %d of %d × %d tiles in groups of %d is tile %d, want %d", step, m, n, group, got, want)
			}
		}
	})
}

func TestAnOrderThatDividesByZeroHasNoTile(t *testing.T) {
	for _, tile := range []string{`["/", 1, ["-", "tiles_m", 2]]`, `["%", 1, ["-", "tiles_m", 2]]`, `["+", "a", 1]`} {
		var o kernels.Order
		if err := json.Unmarshal([]byte(`{"lets": [["a", ["/", "step", ["-", "tiles_m", 2]]]], "tile": `+tile+`}`), &o); err != nil {
			t.Fatal(err)
		}
		if got := o.Tile(0, 2, 2); got != -1 {
			t.Errorf("%s: tile %d, want -1", tile, got)
		}
		if got := o.Tile(0, 3, 2); got < 0 {
			t.Errorf("%s: tile %d where nothing is divided by zero", tile, got)
		}
	}
}
