// Package heap is the symmetric heap: one allocator over one memory per rank,
// so that a Block lies at the same offset on every rank, and Tensor, a rank's
// view of a block with an element type and a shape.
//
// A block is counted. Free drops the owner's hold; the space is used again
// when whatever still works on it (a kernel, a plan) has released its own.
// Nothing here waits, and everything may be called by several goroutines at
// once; ordering the accesses to a tensor's bytes is the caller's affair.
//
// heap imports hip and schedule, and nothing else of this module.
package heap
