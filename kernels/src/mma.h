// The matrix product on NVIDIA's matrix units (sm_80 and later): 128 threads
// compute a tile of 128 x 128; each of four warps holds 64 x 64 of it in
// registers. Slices of a and b, 32 deep, come through three stages of shared
// memory, 48 KiB in all, so that a launch needs no dynamic memory and two CTAs
// share a multiprocessor.
#ifndef SLUICE_MMA_H
#define SLUICE_MMA_H

#include "plain.h"

#if defined(SLUICE_NVIDIA)
namespace sluice {
namespace product {

const unsigned THREADS = 128, DEPTH = 32, STAGES = 3;
const unsigned A_BYTES = TILE_M * DEPTH * 2, STAGE_BYTES = A_BYTES + DEPTH * TILE_N * 2;

// A cell is 16 bytes, 8 elements: the unit of copies and of matrix loads. Cells
// are permuted within a row so that the eight that one load reads lie in
// different banks.
SLUICE_FN unsigned cell_a(unsigned row, unsigned cell) { return row * 64 + (cell ^ (row >> 1 & 3)) * 16; }
SLUICE_FN unsigned cell_b(unsigned row, unsigned cell) { return A_BYTES + row * 256 + (cell ^ (row & 7)) * 16; }

// copy_cell starts a copy into shared memory; a cell outside the matrix is
// zeros.
SLUICE_FN void copy_cell(unsigned to, u64 from, bool inside) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(inside ? 16 : 0)
                 : "memory");
}

SLUICE_FN void copies_end_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// copies_wait leaves at most n groups under way.
template <int n> SLUICE_FN void copies_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory"); }

SLUICE_FN void load_cells(unsigned (&r)[4], unsigned at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}

SLUICE_FN void load_cells_turned(unsigned (&r)[4], unsigned at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(at)
                 : "memory");
}

SLUICE_FN void multiply_add(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

SLUICE_FN unsigned narrow_pair(float low, float high) {
    unsigned both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
    return both;
}

// A Slice is what a thread copies of each slice of a and b: four cells of
// each, rows apart.
struct Slice {
    u64 a, b;                 // first cell, in global memory
    u64 a_step, b_step;       // bytes between the cells of one slice
    u64 b_next;               // bytes from one slice of b to the next
    unsigned a_to, b_to;      // first cell, from the stage's start
    unsigned a_k, b_k;        // first element's depth in the slice
    unsigned a_inside, b_inside; // bit i: a's cell i is a row of a; bit 0: b's column is one of b
    unsigned k;

    SLUICE_FN Slice(const Product &p, u64 row, u64 column) {
        unsigned t = thread(), a_row = t / 4, b_row = t / 16;
        u64 i = row * TILE_M + a_row, j = column * TILE_N + t % 16 * 8;
        a_k = t % 4 * 8;
        b_k = b_row;
        a = p.a + (i * p.k + a_k) * 2;
        b = p.b + (b_row * p.n + j) * 2;
        a_step = 32 * p.k * 2;
        b_step = 8 * p.n * 2;
        b_next = DEPTH * p.n * 2;
        a_to = cell_a(a_row, t % 4); // the permutation repeats every 8 rows
        b_to = cell_b(b_row, t % 16);
        a_inside = 0;
        for (unsigned c = 0; c < 4; c++) a_inside |= (unsigned)(i + 32 * c < p.m) << c;
        b_inside = j < p.n;
        k = (unsigned)p.k;
    }

    SLUICE_FN void copy(unsigned stage, unsigned slice) const {
        unsigned depth = slice * DEPTH;
        if (depth < k) {
            u64 from_a = a + depth * 2, from_b = b + slice * b_next;
#pragma unroll
            for (unsigned c = 0; c < 4; c++) {
                bool in_a = (a_inside >> c & 1) && depth + a_k < k;
                bool in_b = b_inside && depth + b_k + 8 * c < k;
                copy_cell(stage + a_to + c * 32 * 64, in_a ? from_a + c * a_step : a, in_a);
                copy_cell(stage + b_to + c * 8 * 256, in_b ? from_b + c * b_step : b, in_b);
            }
        }
        copies_end_group(); // an empty group keeps the count of groups even
    }
};

// multiply_slice adds the product of one stage to the warp's sums.
SLUICE_FN void multiply_slice(float (&sum)[4][8][4], unsigned stage) {
    unsigned lane = thread() % 32, warp = thread() / 32;
    unsigned row = warp / 2 * 64 + lane % 16, column = warp % 2 * 8 + lane / 16;
#pragma unroll
    for (unsigned half = 0; half < 2; half++) {
        unsigned a[4][4], b[4][4];
#pragma unroll
        for (unsigned i = 0; i < 4; i++) load_cells(a[i], stage + cell_a(row + 16 * i, 2 * half + lane / 16));
#pragma unroll
        for (unsigned j = 0; j < 4; j++) load_cells_turned(b[j], stage + cell_b(16 * half + lane % 16, column + 2 * j));
#pragma unroll
        for (unsigned i = 0; i < 4; i++)
#pragma unroll
            for (unsigned j = 0; j < 8; j++)
                multiply_add(sum[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
}

SLUICE_FN void store_sums(const Product &p, const float (&sum)[4][8][4], u64 row, u64 column) {
    unsigned lane = thread() % 32, warp = thread() / 32;
    u64 top = row * TILE_M + warp / 2 * 64 + lane / 4, left = column * TILE_N + warp % 2 * 64 + lane % 4 * 2;
#pragma unroll
    for (unsigned i = 0; i < 8; i++) {
        u64 at = top + 8 * i;
        if (at >= p.m) continue;
#pragma unroll
        for (unsigned j = 0; j < 8; j++)
            if (left + 8 * j < p.n)
                *(SLUICE_GLOBAL unsigned *)(p.out + at * p.pitch + (left + 8 * j) * 2) =
                    narrow_pair(sum[i / 2][j][i % 2 * 2], sum[i / 2][j][i % 2 * 2 + 1]);
    }
}

struct alignas(128) Stages {
    unsigned char bytes[STAGES * STAGE_BYTES];
};

SLUICE_FN unsigned shared_address(const void *p) {
    unsigned at;
    asm("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }" : "=r"(at) : "l"(p));
    return at;
}

// fits says whether cells lie whole inside the matrices' rows.
SLUICE_FN bool fits(const Product &p) {
    return threads() == THREADS && p.k % 8 == 0 && p.n % 8 == 0 && p.k >> 31 == 0 && p.a % 16 == 0 && p.b % 16 == 0 &&
           p.out % 4 == 0 && p.pitch % 4 == 0;
}

SLUICE_FN void mma_tile(const Product &p, u64 row, u64 column) {
    SLUICE_SHARED(Stages, stages);
    unsigned base = shared_address(&stages);
    Slice slice(p, row, column);
    float sum[4][8][4] = {};
    unsigned slices = (unsigned)tiles(p.k, DEPTH);
    barrier(); // the last tile's slices have been read
    for (unsigned s = 0; s + 1 < STAGES; s++) slice.copy(base + s * STAGE_BYTES, s);
    unsigned from = base, to = base + (STAGES - 1) * STAGE_BYTES, end = base + STAGES * STAGE_BYTES;
#pragma unroll 1
    for (unsigned s = 0; s < slices; s++) {
        copies_wait<STAGES - 2>();
        barrier(); // this slice is here, and the stage that is filled next has been read
        slice.copy(to, s + STAGES - 1);
        multiply_slice(sum, from);
        if ((from += STAGE_BYTES) == end) from = base;
        if ((to += STAGE_BYTES) == end) to = base;
    }
    copies_wait<0>();
    store_sums(p, sum, row, column);
}

} // namespace product
} // namespace sluice
#endif

#endif
