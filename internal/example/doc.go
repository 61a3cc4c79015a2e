// Package example is what the programs under examples have in common: their
// flags, how they say what they do, and how they end.
package example
