// Package gpu has the nvidia platform's own tests: what would hang the process
// is provoked and ends in an error or in success, and figures are compared with
// those of chains written by hand with driver calls. Without a GPU the tests run
// on a stand-in for the driver (internal/fakecuda), where figures mean nothing.
//
// `make gpu-tests` builds these and the shared tests for a GPU machine, with a
// runner.
package gpu
