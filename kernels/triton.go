package kernels

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/triggeredplans/sluice/hip"
)

// Triton is kernels that Triton or Gluon compiled ahead of time, on a device.
type Triton struct {
	where   string
	kernels map[string]*TritonKernel
	modules []*Module
}

// LoadTriton loads onto a device the kernels that python/build.py wrote to a
// directory for the device's architecture. Load them before plans are made:
// while the device works the error is a *hip.BusyError. It is a *TritonError if
// the directory has none for the architecture, or a file that is not what
// build.py wrote; hip.ErrNoModules on the host; or else what Load says.
func LoadTriton(dev hip.Device, dir string) (*Triton, error) {
	return loadTriton(dev, os.DirFS(dir), dir)
}

// LoadTritonFS is LoadTriton for files that a program brings along, such as an
// embed.FS.
func LoadTritonFS(dev hip.Device, fsys fs.FS) (*Triton, error) {
	return loadTriton(dev, fsys, "the program's files")
}

func loadTriton(dev hip.Device, fsys fs.FS, where string) (*Triton, error) {
	if !dev.Properties().Modules {
		return nil, hip.ErrNoModules
	}
	arch, _, _ := strings.Cut(dev.Properties().Arch, ":")
	files, err := fs.Glob(fsys, "*.json")
	if err != nil {
		return nil, &TritonError{Where: where, Why: "it cannot be read", Err: err}
	}
	t := &Triton{where: where, kernels: map[string]*TritonKernel{}}
	var others []string
	for _, file := range files {
		d, err := readDescription(fsys, file)
		if err != nil {
			return nil, errors.Join(&TritonError{Where: where, File: file, Why: "it describes no kernel", Err: err}, t.Unload())
		}
		if d.Arch != arch {
			others = append(others, d.Arch)
			continue
		}
		if err := t.load(dev, fsys, d); err != nil {
			return nil, errors.Join(&TritonError{Where: where, File: file, Why: "its kernel cannot be loaded", Err: err}, t.Unload())
		}
	}
	if len(t.kernels) == 0 {
		slices.Sort(others)
		return nil, &TritonError{Where: where, Why: fmt.Sprintf("it has no kernel for %s, only for %v; build them with python/build.py --target %s", arch, slices.Compact(others), arch)}
	}
	return t, nil
}

// readDescription reads and checks the JSON of one kernel.
func readDescription(fsys fs.FS, file string) (*description, error) {
	text, err := fs.ReadFile(fsys, file)
	if err != nil {
		return nil, err
	}
	d := new(description)
	if err := json.Unmarshal(text, d); err != nil {
		return nil, err
	}
	return d, d.check()
}

func (t *Triton) load(dev hip.Device, fsys fs.FS, d *description) error {
	if t.kernels[d.Name] != nil {
		return fmt.Errorf("there is another kernel %s", d.Name)
	}
	image, err := fs.ReadFile(fsys, d.Binary.File)
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(image); hex.EncodeToString(sum[:]) != d.Binary.SHA256 {
		return fmt.Errorf("%s has the SHA-256 %x, and the description says %s: build both anew", d.Binary.File, sum, d.Binary.SHA256)
	}
	m, err := Load(dev, image)
	if err != nil {
		return err
	}
	t.modules = append(t.modules, m)
	k, err := m.Kernel(d.Entry)
	if err != nil {
		return err
	}
	if err := k.Loaded.Share(d.Shared); err != nil {
		return err
	}
	t.kernels[d.Name] = newTritonKernel(k, d)
	return nil
}

// Kernel is the kernel of that name. The error is a *TritonError that lists
// those there are.
func (t *Triton) Kernel(name string) (*TritonKernel, error) {
	if k := t.kernels[name]; k != nil {
		return k, nil
	}
	var names []string
	for n := range t.kernels {
		names = append(names, n)
	}
	slices.Sort(names)
	return nil, &TritonError{Where: t.where, Why: fmt.Sprintf("it has no kernel %q; it has %v", name, names)}
}

// Unload gives the modules back. The kernels must not be launched any more.
func (t *Triton) Unload() error {
	var errs []error
	for _, m := range t.modules {
		errs = append(errs, m.Unload())
	}
	t.modules = nil
	return errors.Join(errs...)
}

// TritonError says why kernels of Triton cannot be had.
type TritonError struct {
	Where string // the directory
	File  string // in it, "" if no file is at fault
	Why   string
	Err   error // the cause, or nil
}

func (e *TritonError) Error() string {
	s := "kernels: Triton kernels in " + e.Where
	if e.File != "" {
		s += ", " + e.File
	}
	s += ": " + e.Why
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *TritonError) Unwrap() error { return e.Err }
