// Package kfd reads what AMD's kernel driver tells of a machine's GPUs in
// sysfs: where each sits, what its copy engines are, and which engine it
// recommends for each link.
//
// It imports nothing of this module.
package kfd
