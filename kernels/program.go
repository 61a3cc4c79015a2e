package kernels

import "time"

// The operations of a script, each a row of 8 words: the operation, then its
// operands.
const (
	opEnd   = iota
	opFill  // buffer, offset, width, height, pitch, seed
	opMark  // chunk
	opWait  // chunk
	opDelay // nanoseconds
	opSpin  // iterations
	opCheck // buffer, offset, width, height, pitch, seed, error row
	opAwait // address, value
	opStore // address, value
	opCount
)

const opWords = 8

// Program is what the kernel Script executes: a list of operations for each
// CTA.
type Program struct {
	lists []List
}

// NewProgram returns a program of empty lists for so many CTAs.
func NewProgram(ctas int) *Program { return &Program{make([]List, ctas)} }

// On is the list of a CTA. Like an index of a slice, it is one of those the
// program was made for.
func (p *Program) On(cta int) *List { return &p.lists[cta] }

// Words is the program as the kernel reads it, to be stored in memory that the
// device reaches, from an address that is a multiple of 8.
func (p *Program) Words() []uint64 {
	words := make([]uint64, 1+len(p.lists))
	words[0] = uint64(len(p.lists))
	for i := range p.lists {
		words[1+i] = uint64(len(words))
		words = append(words, p.lists[i].words...)
		words = append(words, make([]uint64, opWords)...) // opEnd
	}
	return words
}

// List is the operations of one CTA, in order. Each method adds one and
// returns the list.
type List struct {
	words []uint64
}

// Fill writes a region of the buffer at an address with the pattern of a seed.
func (l *List) Fill(buffer uint64, r Region, seed uint64) *List {
	return l.add(opFill, buffer, uint64(r.Offset), uint64(r.Width), uint64(r.Height), uint64(r.Pitch), seed)
}

// Mark marks a chunk ready.
func (l *List) Mark(chunk int) *List { return l.add(opMark, uint64(chunk)) }

// Wait waits for a chunk.
func (l *List) Wait(chunk int) *List { return l.add(opWait, uint64(chunk)) }

// Delay lets time pass, by the platform's clock.
func (l *List) Delay(d time.Duration) *List { return l.add(opDelay, uint64(max(d, 0))) }

// Spin computes for so many iterations.
func (l *List) Spin(n uint64) *List { return l.add(opSpin, n) }

// Check compares a region of the buffer at an address with the pattern of a
// seed, and counts what it finds in the error row at another.
func (l *List) Check(buffer uint64, r Region, seed, errors uint64) *List {
	return l.add(opCheck, buffer, uint64(r.Offset), uint64(r.Width), uint64(r.Height), uint64(r.Pitch), seed, errors)
}

// Await waits until the low 32 bits of the word at an address are at least
// those of value, unsigned.
func (l *List) Await(addr, value uint64) *List { return l.add(opAwait, addr, value) }

// Store writes the word at an address, after everything the CTA wrote before.
func (l *List) Store(addr, value uint64) *List { return l.add(opStore, addr, value) }

func (l *List) add(op uint64, operands ...uint64) *List {
	row := [opWords]uint64{op}
	copy(row[1:], operands)
	l.words = append(l.words, row[:]...)
	return l
}
