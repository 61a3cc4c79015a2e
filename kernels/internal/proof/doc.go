// Package proof reads the machine code of device kernels (llvm-objdump's text
// for AMD, PTX for NVIDIA) and checks, on every path through it, that data is
// in memory before a mark counts it, that the gate opens after the mark, and
// that nothing is read between a look at a gate and the acquire that follows.
//
// What it accepts is the order that the memory models ask for, whatever
// compiler made it. It imports nothing of this module.
package proof
