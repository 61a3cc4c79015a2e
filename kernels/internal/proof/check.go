package proof

import (
	"errors"
	"fmt"
	"strings"
)

// Want is what a kernel must do.
type Want struct{ Marks, Waits bool }

// Check parses the disassembly of a module and follows every kernel in it. The
// error joins a *Violation for each kernel that breaks the order, that lacks
// what want asks of it, or that is named in want and missing; or it is a
// *ParseError.
func Check(arch, text string, want map[string]Want) (map[string]Report, error) {
	parse, follow := ParsePTX, CheckPTX
	if strings.HasPrefix(arch, "gfx") {
		parse, follow = ParseAMD, CheckAMD
	}
	all, err := parse(arch, text)
	if err != nil {
		return nil, err
	}
	reports := map[string]Report{}
	var broken []error
	for _, c := range all {
		r, err := follow(c)
		if err == nil {
			err = want[c.Kernel].met(c, r)
		}
		if err != nil {
			broken = append(broken, err)
		}
		reports[c.Kernel] = r
	}
	for name := range want {
		if _, ok := reports[name]; !ok {
			broken = append(broken, &Violation{Kernel: name, Arch: arch, Rule: "the module has no such kernel"})
		}
	}
	return reports, errors.Join(broken...)
}

func (w Want) met(c Code, r Report) error {
	lacks := ""
	switch {
	case w.Marks && (r.Marks == 0 || r.Gates == 0):
		lacks = fmt.Sprintf("it must mark: %d marks and %d gate stores after a mark were found", r.Marks, r.Gates)
	case w.Waits && r.Acquires == 0:
		lacks = "it must wait: no acquire of a look at a gate was found"
	default:
		return nil
	}
	return &Violation{Kernel: c.Kernel, Arch: c.Arch, Rule: lacks}
}
