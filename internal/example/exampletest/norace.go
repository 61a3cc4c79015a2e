//go:build !race

package exampletest

// RaceDetector says whether this program watches for data races.
const RaceDetector = false
