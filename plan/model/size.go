package model

import "fmt"

// Size is how much of the protocol is explored.
type Size struct {
	Ranks, Plans int
	Own          int // chunks of each rank in each plan
	Rounds       int
	Faults       int // mishaps in one run, at most
	// MarkOpens makes a writer's count and its opening of the gate one step,
	// for fewer states.
	MarkOpens bool
}

func (s Size) String() string {
	text := fmt.Sprintf("%d ranks, %d plans, %d chunks of each rank, %d rounds, %d mishaps",
		s.Ranks, s.Plans, s.Own, s.Rounds, s.Faults)
	if s.MarkOpens {
		text += ", a mark opens"
	}
	return text
}

// defines are the preprocessor's flags for the size, with a mutation or "".
func (s Size) defines(mutation string) []string {
	flags := []string{
		fmt.Sprintf("-DRANKS=%d", s.Ranks), fmt.Sprintf("-DPLANS=%d", s.Plans),
		fmt.Sprintf("-DOWN=%d", s.Own), fmt.Sprintf("-DROUNDS=%d", s.Rounds),
		fmt.Sprintf("-DFAULTS=%d", s.Faults),
	}
	if s.MarkOpens {
		flags = append(flags, "-DMARK_OPENS")
	}
	if mutation != "" {
		flags = append(flags, "-D"+mutation)
	}
	return flags
}
