// Package fakecuda builds a stand-in for NVIDIA's driver library, so that the
// whole nvidia platform, cgo included, runs in tests on a machine without a
// GPU. Its devices are the host's memory, its streams are threads, and its
// kernels are the host's build of kernels/src. Where the driver would wait for
// ever, it ends the process and says in which call.
package fakecuda
