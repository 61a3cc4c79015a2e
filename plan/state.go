package plan

import "fmt"

// State is where a rank's part of a plan is in its life.
type State int

const (
	Prepared State = iota // by New and NextRound: Start or Close
	Started               // by Start: Wait or Close
	Done                  // by Wait: NextRound or Close
	Failed                // by a Wait that failed, a fault, or a peer that failed: Close
	Closing               // by Close: it finishes by itself
	Closed
)

var stateNames = [...]string{"PREPARED", "STARTED", "DONE", "FAILED", "CLOSING", "CLOSED"}

func (s State) String() string {
	if s < 0 || int(s) >= len(stateNames) {
		return fmt.Sprintf("State(%d)", int(s))
	}
	return stateNames[s]
}

// next says what may be called in each state.
var next = map[State]string{
	Prepared: "Start or Close",
	Started:  "Wait or Close",
	Done:     "NextRound or Close",
	Failed:   "Close",
	Closing:  "nothing: it finishes by itself",
	Closed:   "nothing: make a new plan",
}
