// Package rocm is ROCm's libraries, opened at run time: the few calls of HIP,
// HSA and the KFD device that Sluice makes, with their errors made Go errors.
// Without cgo there is nothing to open, and Open says so.
//
// It imports nothing of this module.
package rocm
