package main

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed text.txt
var text string

// alphabet are the characters of the text, each by its code.
const alphabet = "\n ,.abcdefghijklmnopqrstuvwxyz"

// corpus is the text as codes.
var corpus = encode(text)

func encode(s string) []uint8 {
	codes := make([]uint8, len(s))
	for i := range len(s) {
		code := strings.IndexByte(alphabet, s[i])
		if code < 0 {
			panic(fmt.Sprintf("text.txt has %q at byte %d, which is not in the alphabet", s[i], i))
		}
		codes[i] = uint8(code)
	}
	return codes
}

// draw returns the place of sample i of a step's batch: what follows the
// context that ends there is what the model has to tell. It depends on nothing
// but its arguments, so however many ranks share a batch, it is the same.
func draw(seed uint64, step, i int) int {
	x := seed*0x9e3779b97f4a7c15 + uint64(step)*0xbf58476d1ce4e5b9 + uint64(i)
	return history + int(mix(x)%uint64(len(corpus)-history))
}

// mix scrambles a number.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
