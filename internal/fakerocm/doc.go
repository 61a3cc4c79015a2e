// Package fakerocm is an emulated ROCm for tests: a C library, in the folder
// lib, that stands in for libamdhip64, libhsa-runtime64 and the KFD device. Its
// devices are host memory, its copy engines are threads that decode and execute
// SDMA packets with code of their own, and its kernels are the host's build of
// kernels/src. It can be told to misbehave.
//
// Build makes the library with the C compiler, Use has this process's amd
// platform use it, Tell says how it behaves, and Now what it holds.
//
// It imports nothing of this module, and only tests and programs for tests
// import it.
package fakerocm
