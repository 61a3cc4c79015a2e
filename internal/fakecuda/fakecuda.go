package fakecuda

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// ErrNoCompiler says that there is no C++ compiler to build the library with.
var ErrNoCompiler = errors.New("fakecuda: no g++ is found, which builds the library")

// Library builds the library, if it has not been built from the same sources
// before, and returns its path.
func Library() (string, error) {
	cc, err := exec.LookPath("g++")
	if err != nil {
		return "", ErrNoCompiler
	}
	_, here, _, ok := runtime.Caller(0)
	if !ok {
		return "", errors.New("fakecuda: its sources cannot be found")
	}
	dir := filepath.Dir(here)
	root := filepath.Dir(filepath.Dir(dir))
	sources, err := filepath.Glob(filepath.Join(root, "kernels", "src", "*"))
	if err != nil {
		return "", err
	}
	sources = append(sources, filepath.Join(root, "kernels", "include", "sluice.h"), filepath.Join(dir, "driver", "fakecuda.cpp"))
	sum := sha256.New()
	for _, f := range sources {
		b, err := os.ReadFile(f)
		if err != nil {
			return "", err
		}
		sum.Write(b)
	}
	lib := filepath.Join(root, "build", "fakecuda", fmt.Sprintf("libfakecuda-%x.so", sum.Sum(nil)[:8]))
	if _, err := os.Stat(lib); err == nil {
		return lib, nil
	}
	if err := os.MkdirAll(filepath.Dir(lib), 0o755); err != nil {
		return "", err
	}
	part, err := os.CreateTemp(filepath.Dir(lib), "part-*.so") // others may be building it too
	if err != nil {
		return "", err
	}
	part.Close()
	cmd := exec.Command(cc, "-std=c++17", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC",
		"-I"+filepath.Join(root, "kernels", "include"), "-I"+filepath.Join(root, "kernels", "src"),
		filepath.Join(dir, "driver", "fakecuda.cpp"), filepath.Join(root, "kernels", "src", "host.cpp"), "-o", part.Name(), "-lpthread")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("fakecuda: %w\n%s", err, out.Bytes())
	}
	return lib, os.Rename(part.Name(), lib)
}
