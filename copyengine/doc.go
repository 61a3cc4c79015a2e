// Package copyengine holds the queues on which copy engines carry data from
// one rank to another: what is prepared on them, in which order, how much of
// them it holds, and the rules they enforce (capacity, order, exclusion,
// closing in any order).
//
// A Node owns one Queue for each ordered pair of endpoints. What differs from
// platform to platform stands behind the small interface Hardware; package
// copyengine/sdma has the packets and rings of SDMA, and
// copyengine/softengine the engine that executes them on the host platform.
//
// copyengine imports hip, and nothing else of this module.
package copyengine
