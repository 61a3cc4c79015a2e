// Package exampletest is what the tests of the programs under examples have in
// common: they run a program in the test's process, or the test itself as the
// program, and look at what it prints.
package exampletest
