// Package picture draws a timeline: for each rank what its producer computes,
// and below it, for each peer, the copies and the arrivals, so that one sees
// them overlap.
//
// It imports timeline, and gonum/plot for axes and file formats.
package picture
