// Package sdma is the language that SDMA copy engines speak (SDMA 4.4: gfx90a,
// gfx942, gfx950): packets as bytes and back, a Program of packets that is
// encoded once and patched each round, and the Ring through which an engine is
// told of them.
//
// It moves no data and knows no engine. Of this module it imports hip only,
// for the words that ring and engine share.
package sdma
