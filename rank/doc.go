// Package rank has the Node, World and Rank: N ranks in one process, one
// goroutine each, that share a symmetric heap, meet in collectives, launch
// kernels and put data to each other.
//
// Every collective is built on one rendezvous: each rank brings a Call, the
// last to arrive decides, and everybody leaves with the same verdict. A rank
// that calls something else, leaves or is cancelled makes the collective fail
// on every rank, with an error that says who did what.
//
// rank imports heap, copyengine, kernels, hip and timeline.
package rank
