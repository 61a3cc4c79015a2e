// The matrix product where no matrix units are used: any shape, any number of
// threads.
#ifndef SLUICE_PLAIN_H
#define SLUICE_PLAIN_H

#include "pattern.h"

namespace sluice {
namespace product {

const unsigned TILE_M = 128, TILE_N = 128; // elements of the output

typedef const SLUICE_GLOBAL unsigned short *BFloats;

// Product is out = a b: a has m rows of k elements, b k rows of n, all bf16
// and row-major; out's rows lie pitch bytes apart.
struct Product {
    u64 out, a, b, m, n, k, pitch;
};

SLUICE_FN float widen(unsigned short bits) { return __builtin_bit_cast(float, (unsigned)bits << 16); }

// narrow rounds to the nearest bf16, ties to even.
SLUICE_FN unsigned short narrow(float value) {
    unsigned bits = __builtin_bit_cast(unsigned, value);
    if ((bits & 0x7FFFFFFF) > 0x7F800000) return 0x7FFF; // NaN
    return (unsigned short)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

// plain_tile computes the tile at (row, column) of tiles, clipped at the edges.
SLUICE_FN void plain_tile(const Product &p, u64 row, u64 column) {
    BFloats a = (BFloats)p.a, b = (BFloats)p.b;
    for (unsigned e = thread(); e < TILE_M * TILE_N; e += threads()) {
        u64 i = row * TILE_M + e / TILE_N, j = column * TILE_N + e % TILE_N;
        if (i >= p.m || j >= p.n) continue;
        float sum = 0;
        for (u64 x = 0; x < p.k; x++) sum += widen(a[i * p.k + x]) * widen(b[x * p.n + j]);
        ((SLUICE_GLOBAL unsigned short *)(p.out + i * p.pitch))[j] = narrow(sum);
    }
}

} // namespace product
} // namespace sluice

#endif
