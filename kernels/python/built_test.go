package python

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/triggeredplans/sluice/kernels"
)

// targets are the architectures that kernels are built for, and names the
// kernels.
var (
	targets = []string{"gfx942", "gfx950", "sm_90"}
	names   = []string{"consume", "evaluate", "gemm", "gluon_gemm"}
)

// description is what these tests read of a kernel's JSON.
type description struct {
	Entry   string
	Sources string
	Binary  file
	Text    file
	Order   kernels.Order
}

type file struct{ File, SHA256 string }

func describe(t *testing.T, name, target string) description {
	t.Helper()
	text, err := fs.ReadFile(Built(), name+"."+target+".json")
	if err != nil {
		t.Fatal(err)
	}
	var d description
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func TestEveryKernelIsBuiltForEveryTarget(t *testing.T) {
	want := map[string]bool{}
	for _, name := range names {
		for _, target := range targets {
			d := describe(t, name, target)
			files := []file{d.Binary}
			if target == "sm_90" {
				files = append(files, d.Text)
			}
			for _, f := range files {
				content, err := fs.ReadFile(Built(), f.File)
				if err != nil {
					t.Error(err)
					continue
				}
				if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != f.SHA256 {
					t.Errorf("%s is not the file that its description says", f.File)
				}
				want[f.File] = true
			}
			image, err := fs.ReadFile(Built(), d.Binary.File)
			if err != nil {
				t.Fatal(err)
			}
			format, err := kernels.FormatOf(image)
			if err != nil || format != map[bool]kernels.Format{true: kernels.Cubin, false: kernels.CodeObject}[target == "sm_90"] {
				t.Errorf("%s is a %v (error %v)", d.Binary.File, format, err)
			}
			want[name+"."+target+".json"] = true
		}
	}
	files, err := fs.ReadDir(Built(), ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !want[f.Name()] {
			t.Errorf("nobody knows of %s", f.Name())
		}
	}
}

// A change in the Python sources needs a new build.
func TestTheBuiltKernelsComeFromTheseSources(t *testing.T) {
	digest := sha256.New()
	for _, folder := range []string{"sluice_view", "gemm"} {
		files, err := filepath.Glob(filepath.Join(folder, "*.py"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, error %v", folder, files, err)
		}
		slices.Sort(files)
		for _, f := range files {
			content, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			digest.Write(content)
		}
	}
	now := hex.EncodeToString(digest.Sum(nil))
	for _, name := range names {
		for _, target := range targets {
			if d := describe(t, name, target); d.Sources != now {
				t.Errorf("%s for %s was built from other sources (%.12s, and they are %.12s): run make triton", name, target, d.Sources, now)
			}
		}
	}
}

func TestTheKernelsOrderIsTheBuiltInOne(t *testing.T) {
	for _, name := range names {
		for _, target := range targets {
			d := describe(t, name, target)
			for _, shape := range [][2]int{{1, 1}, {5, 3}, {8, 8}, {9, 4}, {64, 32}, {17, 1}, {1, 17}} {
				for step := -1; step <= shape[0]*shape[1]; step++ {
					if got, want := d.Order.Tile(step, shape[0], shape[1]), kernels.TileOf(step, shape[0], shape[1], 8); got != want {
						t.Fatalf("%s for %s: step %d of %v tiles is tile %d, want %d", name, target, step, shape, got, want)
					}
				}
			}
		}
	}
}
