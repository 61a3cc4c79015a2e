// Package plan has the triggered plan: a kernel marks each chunk of its output
// ready while it runs, and copy engines that were prepared beforehand carry
// the chunk to every peer and signal its arrival there.
//
// A plan is prepared once, by New, and used for many rounds: Start, a kernel
// that marks every chunk ready, Wait, NextRound. New, NextRound and Close are
// collective: every rank calls them, and they succeed on every rank or on none.
//
// The rules of a plan's life are in machine, which does no I/O; the files
// around it carry them out.
package plan
