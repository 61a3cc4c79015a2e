package rocm

import "path/filepath"

// Config says where ROCm is looked for.
type Config struct {
	// Dir, if not empty, is the only folder in which the libraries are looked
	// for. Otherwise the system's loader looks, then /opt/rocm/lib.
	Dir string
	// KFD, if not empty, is a library that stands in for the KFD device.
	KFD string
}

// The names of the libraries, newest first.
var (
	hipNames = []string{"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so"}
	hsaNames = []string{"libhsa-runtime64.so.1"}
)

// paths is where a library of several names may be, in order.
func (c Config) paths(names []string) []string {
	if c.Dir != "" {
		return in(c.Dir, names)
	}
	return append(append([]string{}, names...), in("/opt/rocm/lib", names)...)
}

func in(dir string, names []string) []string {
	paths := make([]string, len(names))
	for i, n := range names {
		paths[i] = filepath.Join(dir, n)
	}
	return paths
}
