package kernels

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// Format is what a module's bytes are.
type Format int

// The formats of modules. Any compiler's will do.
const (
	PTX        Format = iota + 1 // text for NVIDIA, compiled when it is loaded
	Cubin                        // machine code for one NVIDIA architecture
	Fatbin                       // several of the two
	CodeObject                   // machine code for one AMD architecture
	Bundle                       // several of those, as clang and hipcc bundle them
)

func (f Format) String() string {
	switch f {
	case PTX:
		return "PTX"
	case Cubin:
		return "cubin"
	case Fatbin:
		return "fatbin"
	case CodeObject:
		return "code object"
	case Bundle:
		return "code object bundle"
	}
	return fmt.Sprintf("Format(%d)", int(f))
}

// NVIDIA reports whether NVIDIA devices load the format; AMD's load the others.
func (f Format) NVIDIA() bool { return f == PTX || f == Cubin || f == Fatbin }

const (
	elfMachine       = 18 // offset of e_machine
	elfMachineCUDA   = 190
	elfMachineAMDGPU = 224
	fatbinMagic      = 0xBA55ED50
)

// FormatOf tells a module's format from its first bytes (ELF's machine numbers,
// the fatbin's and the bundles' magic words, PTX's .version directive). The
// error is a *FormatError.
func FormatOf(module []byte) (Format, error) {
	switch {
	case bytes.HasPrefix(module, []byte("\x7fELF")):
		if len(module) < elfMachine+2 {
			return 0, &FormatError{Bytes: len(module), Found: "an ELF file that is cut off"}
		}
		switch m := binary.LittleEndian.Uint16(module[elfMachine:]); m {
		case elfMachineCUDA:
			return Cubin, nil
		case elfMachineAMDGPU:
			return CodeObject, nil
		default:
			return 0, &FormatError{Bytes: len(module), Found: fmt.Sprintf("an ELF file for machine %d, which is no GPU", m)}
		}
	case len(module) >= 4 && binary.LittleEndian.Uint32(module) == fatbinMagic:
		return Fatbin, nil
	case bytes.HasPrefix(module, []byte("__CLANG_OFFLOAD_BUNDLE__")), bytes.HasPrefix(module, []byte("CCOB")):
		return Bundle, nil
	case isPTX(module):
		return PTX, nil
	}
	return 0, &FormatError{Bytes: len(module), Found: "none of their beginnings"}
}

// isPTX looks for .version behind blank lines and comments.
func isPTX(module []byte) bool {
	for len(module) > 0 {
		line, rest, _ := bytes.Cut(module, []byte("\n"))
		module = rest
		line = bytes.TrimSpace(line)
		if len(line) == 0 || bytes.HasPrefix(line, []byte("//")) {
			continue
		}
		return bytes.HasPrefix(line, []byte(".version"))
	}
	return false
}

// FormatError says that bytes are no module.
type FormatError struct {
	Bytes int // how many there are
	Found string
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("kernels: %d bytes are no module: found %s; a module is PTX, a cubin, a fatbin or an AMD code object", e.Bytes, e.Found)
}
