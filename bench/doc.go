// Package bench measures whole rounds, through the packages that users call;
// what one package does is measured in that package. A benchmark whose figure
// has a limit fails beyond it. `make bench` runs them.
//
// It has no code of its own besides benchmarks, and may import anything.
package bench
