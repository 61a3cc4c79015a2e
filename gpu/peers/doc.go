// Package peers has the tests that need several GPUs of one machine: every pair
// of them has a copy engine, plans carry data over the links between them, and
// figures are compared with those of calls by hand. Without GPUs the tests run
// on three devices of a stand-in for the driver, where figures mean nothing.
//
// `make peer-tests` builds them for a GPU machine.
package peers
