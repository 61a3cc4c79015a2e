//go:build !cgo || !linux

package fakerocm

import "errors"

// ErrNoCgo says that the program was built without cgo, by which the library is
// reached.
var ErrNoCgo = errors.New("fakerocm: the program was built without cgo")

// Tell returns ErrNoCgo.
func Tell(string) error { return ErrNoCgo }

// Now returns ErrNoCgo.
func Now() (Counts, error) { return Counts{}, ErrNoCgo }
