package python

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// export is what export.py makes of tile_of in a Python source.
type export struct {
	Order json.RawMessage
	Tiles []int // as Python runs it, for 5 × 3 tiles in groups of 2
	Error string
}

// exported exports tile_of of every source, without Triton: a stand-in for it
// is enough for a function of plain integers.
func exported(t *testing.T, sources ...string) []export {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	const program = `
import importlib, json, sys, types
if sys.version_info < (3, 10):
    sys.exit(3)
sys.dont_write_bytecode = True
sys.path[:0] = [sys.argv[1], "."]
triton, language = types.ModuleType("triton"), types.ModuleType("triton.language")
triton.jit, triton.language, language.constexpr = (lambda f: f), language, int
sys.modules.update({"triton": triton, "triton.language": language})
from export import OrderError, order_of
all = []
for i in range(int(sys.argv[2])):
    tile_of = importlib.import_module(f"mine{i}").tile_of
    try:
        order = order_of(tile_of, {"group": 8})
        all.append({"order": order, "tiles": [tile_of(step, 5, 3, 2) for step in range(15)]})
    except OrderError as error:
        all.append({"error": str(error)})
print(json.dumps(all))
`
	dir := t.TempDir()
	for i, source := range sources {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("mine%d.py", i)), []byte(source), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "-c", program, dir, strconv.Itoa(len(sources)))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 3 {
		t.Skip("python3 is older than 3.10")
	} else if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	var all []export
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestTheOrderIsExportedFromTheKernelsSource(t *testing.T) {
	source, err := os.ReadFile(filepath.Join("gemm", "order.py"))
	if err != nil {
		t.Fatal(err)
	}
	got := exported(t, string(source))[0]
	if want := []int{0, 3, 1, 4, 2, 5, 6, 9, 7, 10, 8, 11, 12, 13, 14}; !reflect.DeepEqual(got.Tiles, want) {
		t.Errorf("Python's tiles are %v, want %v (error %s)", got.Tiles, want, got.Error)
	}
	for _, target := range targets {
		text, err := os.ReadFile(filepath.Join("built", "gemm."+target+".json"))
		if err != nil {
			t.Fatal(err)
		}
		var built struct{ Order any }
		if err := json.Unmarshal(text, &built); err != nil {
			t.Fatal(err)
		}
		var now any
		if err := json.Unmarshal(got.Order, &now); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(now, built.Order) {
			t.Errorf("%s: the built order is %v, and the source's %v", target, built.Order, now)
		}
	}
}

func TestAnOrderThatAHostCannotRunIsNotExported(t *testing.T) {
	cases := map[string]string{
		"its parameters are":           "def tile_of(step, group):\n    return step\n",
		"For is none of these":         "def tile_of(step, tiles_m, tiles_n, group):\n    for i in range(3):\n        pass\n    return step\n",
		"it does not end in a return":  "def tile_of(step, tiles_m, tiles_n, group):\n    a = step\n",
		"step / 2 is none of these":    "def tile_of(step, tiles_m, tiles_n, group):\n    return step / 2\n",
		"abs(step) is none of these":   "def tile_of(step, tiles_m, tiles_n, group):\n    return abs(step)\n",
		"1.5 is none of these":         "def tile_of(step, tiles_m, tiles_n, group):\n    return 1.5\n",
		"min(1, 2, 3) is none of":      "def tile_of(step, tiles_m, tiles_n, group):\n    return min(1, 2, 3)\n",
		"line 2":                       "def tile_of(step, tiles_m, tiles_n, group):\n    a, b = step, 1\n    return a\n",
		"Assign is none of these; an ": "def tile_of(step, tiles_m, tiles_n, group):\n    a = b = step\n    return a\n",
	}
	says := slices.Sorted(maps.Keys(cases))
	var sources []string
	for _, s := range says {
		sources = append(sources, cases[s])
	}
	for i, got := range exported(t, sources...) {
		if !strings.Contains(got.Error, says[i]) {
			t.Errorf("%s: error %q", says[i], got.Error)
		}
	}
}
