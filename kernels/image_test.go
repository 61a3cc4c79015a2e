package kernels_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/triggeredplans/sluice/kernels"
)

func TestEveryArchitectureGetsTheNewestImageThatRunsOnIt(t *testing.T) {
	for arch, want := range map[string]string{
		"sm_80": "sm_80", "sm_86": "sm_80", "sm_89": "sm_80", "sm_90": "sm_90", "sm_90a": "sm_90", "sm_120": "sm_90",
		"gfx90a": "gfx90a", "gfx942": "gfx942", "gfx942:sramecc+:xnack-": "gfx942", "gfx950": "gfx950",
	} {
		image, err := kernels.BuiltinImage(arch)
		if err != nil {
			t.Errorf("%s: %v", arch, err)
			continue
		}
		format := kernels.CodeObject
		if strings.HasPrefix(arch, "sm_") {
			format = kernels.PTX
		}
		if image.Arch != want || image.Format != format || !strings.Contains(image.Compiler, "clang version ") {
			t.Errorf("%s: got the image for %s, %v, built by %q; want %s", arch, image.Arch, image.Format, image.Compiler, want)
		}
		for _, kernel := range []string{"fill", "tiled", "consumer", "script", "matmul", "progress", "evaluate"} {
			if !strings.Contains(string(image.Bytes), kernel) {
				t.Errorf("%s: kernel %s is not in the image", arch, kernel)
			}
		}
	}
}

func TestAnArchitectureWithoutAnImageIsNamed(t *testing.T) {
	for _, arch := range []string{"", "go", "sm_75", "sm_x", "gfx1100", "gfx94"} {
		_, err := kernels.BuiltinImage(arch)
		var e *kernels.ArchError
		if !errors.As(err, &e) || e.Arch != arch || len(e.Known) != 5 {
			t.Errorf("%q: error %v, want an ArchError", arch, err)
		}
	}
}

func TestTheManifestHoldsTheChecksumOfEveryImage(t *testing.T) {
	manifest, err := os.ReadFile("embedded/manifest.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(manifest)), "\n")
	if len(lines) != 1+len(kernels.ImageArchs())+3 {
		t.Fatalf("%d lines: want the compiler, a line for each image, and one for each disassembly", len(lines))
	}
	for _, line := range lines[1:] {
		want, name, _ := strings.Cut(line, "  ")
		path := filepath.Join("embedded", name)
		if strings.HasSuffix(name, ".dis") {
			path = filepath.Join("testdata", "disassembly", name)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
			continue
		}
		if sum := sha256.Sum256(b); hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s is not the file that was built with the others: run 'make kernels'", path)
		}
	}
}

func TestAModulesFormatIsToldFromItsBytes(t *testing.T) {
	elf := func(machine byte) string {
		return "\x7fELF" + strings.Repeat("\x00", 14) + string([]byte{machine, 0})
	}
	for text, want := range map[string]kernels.Format{
		"// by hand\n\n.version 8.3\n.target sm_90\n": kernels.PTX,
		elf(190):                               kernels.Cubin,
		elf(224):                               kernels.CodeObject,
		"\x50\xed\x55\xba\x01\x00":             kernels.Fatbin,
		"__CLANG_OFFLOAD_BUNDLE__\x02\x00\x00": kernels.Bundle,
		"CCOB\x02\x00":                         kernels.Bundle,
	} {
		got, err := kernels.FormatOf([]byte(text))
		if err != nil || got != want {
			t.Errorf("%q: got %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "\x7fELF", elf(62), ".target sm_90", "#!/bin/sh\n", "//"} {
		_, err := kernels.FormatOf([]byte(text))
		var e *kernels.FormatError
		if !errors.As(err, &e) {
			t.Errorf("%q: error %v, want a FormatError", text, err)
		}
	}
}
