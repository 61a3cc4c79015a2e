// Package kernels is the device side of a plan: the view through which a
// kernel marks chunks ready and waits for them, and the kernels that examples
// and tests launch by name.
//
// It imports heap and hip, and nothing else of this module.
package kernels
