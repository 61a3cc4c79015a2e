// Soak runs random worlds, plans, sizes, orders and faults for a given time,
// checks every byte and all accounting, and reports what it has done:
//
//	go run ./internal/soak -for 10m -seed 1
//
// A bout is a node with one or two worlds on it, drawn from a seed of its own:
// -from N -bouts 1 runs bout N of a seed again. The ranks of a bout do the same
// acts in the same order; a fault is an act that says which errors each rank
// must get, and the acts behind it say that nothing was left of it.
package main
