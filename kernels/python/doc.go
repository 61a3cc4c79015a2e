// Package python is kernels in Triton and Gluon: the view with which they take
// part in plans (sluice_view), a matrix product and its consumer (gemm), and the
// program that compiles them ahead of time (build.py), with what it made
// (built). kernels.LoadTriton loads the same from a directory.
//
// It imports nothing of this module.
package python
