package kernels

import (
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

//go:embed embedded
var embedded embed.FS

// An Image is the built-in kernels (fill, tiled, consumer, script, matmul,
// progress, evaluate) as machine code. The handle and the arguments are those
// of the host's kernels.
type Image struct {
	Arch     string // what it was built for: "sm_80", "sm_90", "gfx90a", "gfx942", "gfx950"
	Compiler string // its version, as it calls itself
	Format   Format // PTX, or an AMD code object
	Bytes    []byte
}

// imageFiles are the embedded images by the architecture they were built for.
var imageFiles = map[string]string{
	"sm_80":  "sm_80.ptx",
	"sm_90":  "sm_90.ptx",
	"gfx90a": "gfx90a.co",
	"gfx942": "gfx942.co",
	"gfx950": "gfx950.co",
}

// ImageArchs are the architectures that images were built for.
func ImageArchs() []string {
	archs := make([]string, 0, len(imageFiles))
	for a := range imageFiles {
		archs = append(archs, a)
	}
	slices.Sort(archs)
	return archs
}

// BuiltinImage is the image that runs on a device whose hip.Properties.Arch is
// arch. NVIDIA's are PTX, which also runs on every later architecture; AMD's
// run on their own only, and what follows a colon ("gfx942:sramecc+") is not
// looked at. The error is an *ArchError.
func BuiltinImage(arch string) (Image, error) {
	base, _, _ := strings.Cut(arch, ":")
	if sm, ok := strings.CutPrefix(base, "sm_"); ok {
		base = newestPTX(strings.TrimSuffix(sm, "a"))
	}
	file, ok := imageFiles[base]
	if !ok {
		return Image{}, &ArchError{Arch: arch, Known: ImageArchs()}
	}
	b, err := embedded.ReadFile("embedded/" + file)
	if err != nil {
		return Image{}, fmt.Errorf("kernels: image %s: %w", file, err)
	}
	manifest, err := embedded.ReadFile("embedded/manifest.txt")
	if err != nil {
		return Image{}, fmt.Errorf("kernels: the images' manifest: %w", err)
	}
	compiler, _, _ := strings.Cut(string(manifest), "\n")
	format, err := FormatOf(b)
	if err != nil {
		return Image{}, err
	}
	return Image{Arch: base, Compiler: compiler, Format: format, Bytes: b}, nil
}

// newestPTX is the latest architecture with an image that a device of
// compute capability sm ("90" is 9.0) runs, "" if there is none.
func newestPTX(sm string) string {
	have, err := strconv.Atoi(sm)
	if err != nil {
		return ""
	}
	best := ""
	for _, a := range ImageArchs() {
		if n, ok := strings.CutPrefix(a, "sm_"); ok {
			if v, _ := strconv.Atoi(n); v <= have {
				best = a // archs are sorted
			}
		}
	}
	return best
}

// ArchError says that there is no image for an architecture.
type ArchError struct {
	Arch  string
	Known []string
}

func (e *ArchError) Error() string {
	return fmt.Sprintf("kernels: no built-in image runs on %q; there are images for %s (sm_ images also run on later sm_ devices); build kernels/src for it and load that as a module of your own",
		e.Arch, strings.Join(e.Known, ", "))
}
