// Package hip is the shim between Sluice and a machine's GPUs: devices,
// memory, streams and launches, named in the shape of AMD's HIP, on every
// platform Sluice knows. It also owns the words that are waited on (gates,
// signals, counts): how they are loaded, stored, added to, and how a goroutine
// parks until one of them changes.
//
// The host platform needs no GPU. A device is virtual, memory is mapped host
// memory (Go memory under the race detector, which neither reports nor orders
// accesses to mapped memory), and a kernel is a Go function whose blocks run on
// goroutines.
//
// An integer never becomes a pointer: Resolve turns an address into a Memory
// that is held and an offset in it, and bytes are reached by slicing.
//
// Of this module, hip imports only the packages in its internal folder.
package hip
