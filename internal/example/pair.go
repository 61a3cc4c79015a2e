package example

import "fmt"

// Pair is a flag of the form AxB, both at least 1.
type Pair struct{ A, B int }

func (p *Pair) String() string { return fmt.Sprintf("%dx%d", p.A, p.B) }

// maxPair bounds both figures, so that no arithmetic on them overflows.
const maxPair = 1 << 30

// Set implements flag.Value.
func (p *Pair) Set(s string) error {
	var a, b int
	var rest string
	if n, _ := fmt.Sscanf(s, "%dx%d%s", &a, &b, &rest); n != 2 || min(a, b) < 1 || max(a, b) > maxPair {
		return fmt.Errorf("it has the form ROWSxCOLS, both 1 to %d, for example 128x128", maxPair)
	}
	p.A, p.B = a, b
	return nil
}
