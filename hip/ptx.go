package hip

import (
	"bytes"
	"regexp"
	"strconv"
)

var (
	ptxEntry     = regexp.MustCompile(`\.entry\s+([\w$]+)\s*\(([^)]*)\)`)
	ptxParameter = regexp.MustCompile(`\.param\s+(?:\.align\s+\d+\s+)?\.[a-z]+(\d+)(?:\s+\.ptr[^,]*?)?\s+[\w$]+(?:\[(\d+)\])?`)
)

// ptxParameters are the sizes in bytes of the parameters of each kernel of a
// PTX module; nil if it is none.
func ptxParameters(module []byte) map[string][]byte {
	if !bytes.Contains(module, []byte(".entry")) || bytes.IndexByte(module, 0) >= 0 {
		return nil
	}
	kernels := map[string][]byte{}
	for _, e := range ptxEntry.FindAllSubmatch(module, -1) {
		sizes := []byte{}
		for _, p := range ptxParameter.FindAllSubmatch(e[2], -1) {
			bits, _ := strconv.Atoi(string(p[1]))
			n := bits / 8
			if len(p[2]) > 0 {
				of, _ := strconv.Atoi(string(p[2]))
				n *= of
			}
			sizes = append(sizes, byte(min(n, 255)))
		}
		kernels[string(e[1])] = sizes
	}
	return kernels
}
