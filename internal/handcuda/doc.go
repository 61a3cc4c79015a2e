// Package handcuda submits triggered chains as one writes them by hand with
// driver calls, for benchmarks to compare with. It reaches the driver by
// itself, on the context that package hip uses too.
package handcuda
