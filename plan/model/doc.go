// Package model holds the protocol of package plan in Promela, and checks it
// with spin: the properties hold in every reachable state, and each mutation,
// which drops one rule, is found out by a counterexample. See docs/model.md.
//
// It imports no package of this module. It needs spin and a C compiler.
package model
