// Package inject lets tests make a step of a collective fail on one rank. A
// nil Func injects nothing.
package inject
