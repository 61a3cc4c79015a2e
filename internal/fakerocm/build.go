package fakerocm

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Way is how queues are made.
type Way string

// The ways that the amd platform tries, in order. A library for KFD has no
// hsa_amd_queue_create, as ROCm's had none before ROCm 10.
const (
	HSA Way = "hsa"
	KFD Way = "kfd"
)

// The names under which the library is found.
const (
	hipName = "libamdhip64.so.7"
	hsaName = "libhsa-runtime64.so.1"
)

// FlagsSetting is the environment variable that adds flags for the compilers,
// for example -fsanitize=address.
const FlagsSetting = "FAKEROCM_FLAGS"

// Root is the folder of this module's source.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..")
}

// Sysfs is a folder that stands in for /sys on a machine of 2, 4 or 8 GPUs.
func Sysfs(devices int) string {
	return filepath.Join(Root(), "hip", "testdata", "kfd", fmt.Sprintf("%dgpu", devices))
}

// Build compiles the library, unless that has been done for the same source,
// and returns the folder that has it under its names.
func Build(way Way) (dir string, err error) {
	flags := strings.Fields(os.Getenv(FlagsSetting))
	sum, err := digest(flags)
	if err != nil {
		return "", err
	}
	dir = filepath.Join(Root(), "build", "fakerocm", sum, string(way))
	if _, err := os.Stat(filepath.Join(dir, hipName)); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o777); err != nil {
		return "", err
	}
	made, err := os.MkdirTemp(filepath.Dir(dir), "making")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(made)
	if err := compile(made, way, flags); err != nil {
		return "", err
	}
	// Another process may have been faster: then its library is as good.
	if err := os.Rename(made, dir); err != nil {
		if _, found := os.Stat(filepath.Join(dir, hipName)); found != nil {
			return "", err
		}
	}
	return dir, nil
}

// sources are what the library is made of, relative to Root.
func sources() ([]string, error) {
	var all []string
	for _, pattern := range []string{"internal/fakerocm/lib/*", "kernels/src/*", "kernels/include/*"} {
		names, err := filepath.Glob(filepath.Join(Root(), filepath.FromSlash(pattern)))
		if err != nil {
			return nil, err
		}
		all = append(all, names...)
	}
	slices.Sort(all)
	return all, nil
}

// digest names a build by its source and its flags.
func digest(flags []string) (string, error) {
	names, err := sources()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintln(h, flags)
	for _, n := range names {
		f, err := os.Open(n)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(h, filepath.Base(n))
		_, err = io.Copy(h, f)
		f.Close()
		if err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:8]), nil
}

// compile puts the library into dir.
func compile(dir string, way Way, flags []string) error {
	lib, src, include := filepath.Join(Root(), "internal/fakerocm/lib"), filepath.Join(Root(), "kernels/src"), filepath.Join(Root(), "kernels/include")
	common := append([]string{"-O2", "-g", "-fPIC", "-pthread", "-fvisibility=hidden", "-I" + src, "-I" + include}, flags...)
	c := append([]string{"-std=gnu11", "-Wall", "-Wextra", "-Werror", "-c"}, common...)
	if way == KFD {
		c = append(c, "-DFAKEROCM_OLD")
	}
	names, err := filepath.Glob(filepath.Join(lib, "*.c"))
	if err != nil {
		return err
	}
	if err := run(dir, compiler("CC", "gcc"), append(c, names...)...); err != nil {
		return err
	}
	if err := run(dir, compiler("CXX", "g++"), append(append([]string{"-std=c++17", "-c"}, common...), filepath.Join(src, "host.cpp"))...); err != nil {
		return err
	}
	objects, err := filepath.Glob(filepath.Join(dir, "*.o"))
	if err != nil {
		return err
	}
	link := append([]string{"-shared", "-pthread", "-o", hipName}, flags...)
	if err := run(dir, compiler("CXX", "g++"), append(link, objects...)...); err != nil {
		return err
	}
	return os.Symlink(hipName, filepath.Join(dir, hsaName))
}

// Missing is the name of a compiler that Build needs and that is not here, "" if
// both are.
func Missing() string {
	for _, c := range []string{compiler("CC", "gcc"), compiler("CXX", "g++")} {
		if _, err := exec.LookPath(c); err != nil {
			return c
		}
	}
	return ""
}

func compiler(setting, name string) string {
	if c := os.Getenv(setting); c != "" {
		return c
	}
	return name
}

func run(dir, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("fakerocm: %s: %w\n%s", name, err, out)
	}
	return nil
}
