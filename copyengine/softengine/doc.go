// Package softengine is a copy engine in software: a goroutine that executes
// the SDMA packets of one queue's ring.
//
// It knows the ring's bytes, two counts and registered memory, nothing of plans
// or ranks. A closed gate parks its goroutine and delays no other queue; bytes
// that are no packet, and addresses outside registered memory, stop the queue
// with a *FaultError and leave the process alone. Copies yield after every
// MiB, so that neither the collector nor Stop waits for a long one. Bytes move
// with Go's copy, except that on amd64 large windows are streamed past the cache
// by a few lines of assembly; not under the race detector, which sees every byte.
//
// A poll wakes when its word is written through hip.Word or by a FENCE, ATOMIC
// or TIMESTAMP of any engine, not when a copy lands on it: copies carry data,
// atomics carry signals.
//
// Of this module it imports copyengine/sdma, hip and internal/histogram.
package softengine
