// The built-in kernels. Arguments are 64-bit words; addresses are the
// device's. Compiled as CUDA, as HIP and, for the host, as C++.
#include "sluice.h"

#include "mma.h"
#include "pattern.h"
#include "plain.h"
#include "script.h"

namespace sluice {

// fill: the grid writes the window together, then every CTA marks the chunk,
// whose writers are the CTAs.
SLUICE_KERNEL void fill(u64 handle, u64 buffer, u64 offset, u64 width, u64 height, u64 pitch, u64 base, u64 chunk) {
    const Handle *h = (const Handle *)handle;
    Window w = {buffer, offset, width, height, pitch};
    u64 worker = (u64)block() * threads() + thread(), workers = (u64)blocks() * threads();
    write_window(w, seed_of(base, rank(h), round(h)), worker, workers);
    mark_ready(h, chunk);
}

// tiled: a persistent producer. CTA p takes steps p, p + CTAs, ... of the tile
// order and marks the step's chunk, steps_per_chunk steps each.
SLUICE_KERNEL void tiled(u64 handle, u64 buffer, u64 offset, u64 rows, u64 row_bytes, u64 pitch, u64 tile_rows,
                         u64 tile_bytes, u64 steps_per_chunk, u64 group, u64 base) {
    const Handle *h = (const Handle *)handle;
    u64 tiles_m = tiles(rows, tile_rows), tiles_n = tiles(row_bytes, tile_bytes);
    u64 seed = seed_of(base, rank(h), round(h)), start = first(h);
    for (u64 step = block(); step < tiles_m * tiles_n; step += blocks()) {
        u64 tile = tile_of(step, tiles_m, tiles_n, group);
        u64 top = tile / tiles_n * tile_rows, left = tile % tiles_n * tile_bytes;
        Window w = {buffer, offset + top * pitch + left, tile_bytes, tile_rows, pitch};
        if (w.width > row_bytes - left) w.width = row_bytes - left;
        if (w.height > rows - top) w.height = rows - top;
        write_window(w, seed, thread(), threads());
        mark_ready(h, start + step / steps_per_chunk);
    }
}

// consumer: CTA b takes chunks b, b + CTAs, ... of all ranks, waits for each
// and checks it. table: for chunk c the regions from table[c] to table[c+1],
// then four words per region: offset, width, height, pitch. errors: wrong
// bytes, 1 + the last chunk that had any, chunks checked.
SLUICE_KERNEL void consumer(u64 handle, u64 buffer, u64 table, u64 base, u64 errors) {
    const Handle *h = (const Handle *)handle;
    detail::Word prefix = (detail::Word)table;
    u64 all = chunks(h), now = round(h);
    detail::Word regions = prefix + all + 1;
    for (u64 chunk = block(); chunk < all; chunk += blocks()) {
        wait(h, chunk);
        u64 seed = seed_of(base, owner(h, chunk), now), wrong = 0;
        for (u64 r = prefix[chunk]; r < prefix[chunk + 1]; r++) {
            Window w = {buffer, regions[4 * r], regions[4 * r + 1], regions[4 * r + 2], regions[4 * r + 3]};
            wrong += wrong_bytes(w, seed, thread(), threads());
        }
        if (wrong) {
            detail::count(errors, wrong);
            detail::note(errors + 8, chunk + 1);
        }
        barrier();
        if (leader()) detail::count(errors + 16, 1);
    }
}

// matmul: a persistent producer of out = a b, tile by tile in the tile order;
// a is m x k, b is k x n, both bf16, row-major and packed; out is bf16, its
// rows pitch bytes apart, offset bytes into the buffer. Tiles are
// product::TILE_M x TILE_N. It marks each step's chunk unless handle is 0.
SLUICE_KERNEL
#if defined(SLUICE_NVIDIA)
__attribute__((launch_bounds(product::THREADS, 2)))
#endif
void matmul(u64 handle, u64 buffer, u64 offset, u64 pitch, u64 a, u64 b, u64 m, u64 n, u64 k, u64 steps_per_chunk,
            u64 group) {
    const Handle *h = (const Handle *)handle;
    product::Product p = {buffer + offset, a, b, m, n, k, pitch};
    u64 tiles_m = tiles(m, product::TILE_M), tiles_n = tiles(n, product::TILE_N);
    u64 start = h ? first(h) : 0;
    for (u64 step = block(); step < tiles_m * tiles_n; step += blocks()) {
        u64 tile = tile_of(step, tiles_m, tiles_n, group);
#if defined(SLUICE_NVIDIA)
        if (product::fits(p))
            product::mma_tile(p, tile / tiles_n, tile % tiles_n);
        else
#endif
            product::plain_tile(p, tile / tiles_n, tile % tiles_n);
        if (h) mark_ready(h, start + step / steps_per_chunk);
    }
}

namespace gates {

// least_arrival is the earliest round up to which a peer has the chunk.
SLUICE_FN u64 least_arrival(const Handle *h, u64 chunk) {
    u64 least = round(h);
    for (u64 peer = 0; peer < world(h); peer++) {
        if (peer == rank(h)) continue;
        u64 row = ((detail::Word)h->tables)[peer] + chunk * sizeof(GateRow);
        u64 seen = detail::load_acquire(row + __builtin_offsetof(GateRow, arrival));
        if (!detail::reached((unsigned)seen, least)) least = seen;
    }
    return least;
}

// look writes the chunk's four words and says whether its round is done.
SLUICE_FN bool look(const Handle *h, u64 chunk, detail::Word out) {
    u64 row = h->gates + chunk * sizeof(GateRow);
    u64 ready = detail::load_acquire(row + __builtin_offsetof(GateRow, ready));
    u64 arrival = detail::load_acquire(row + __builtin_offsetof(GateRow, arrival));
    bool own = owner(h, chunk) == rank(h);
    u64 peers = own ? least_arrival(h, chunk) : 0;
    out[0] = ready;
    out[1] = arrival;
    out[2] = detail::load_acquire(row + __builtin_offsetof(GateRow, writers));
    out[3] = peers;
    if (!own) return detail::reached((unsigned)arrival, round(h));
    return detail::reached((unsigned)ready, round(h)) && detail::reached((unsigned)peers, round(h));
}

} // namespace gates

// progress: one CTA looks at the round at most polls times, until it is done:
// own chunks ready and arrived at every peer, the others arrived here. out
// gets a row of 8 words: chunks still short, looks made; then four words per
// chunk, each the low 32 bits of: ready, arrival, writers, and for own chunks
// the least arrival at a peer.
SLUICE_KERNEL void progress(u64 handle, u64 out, u64 polls) {
    if (block() != 0) return;
    const Handle *h = (const Handle *)handle;
    detail::Word row = (detail::Word)out;
    for (u64 looks = 1;; looks++) {
        if (leader()) row[0] = 0;
        barrier();
        u64 lacking = 0;
        for (u64 chunk = thread(); chunk < chunks(h); chunk += threads())
            lacking += !gates::look(h, chunk, row + 8 + 4 * chunk);
        if (lacking) detail::count(out, lacking);
        barrier();
        u64 left = detail::uniform(leader() ? detail::load_acquire(out) : 0);
        if (left == 0 || looks >= polls) {
            if (leader()) row[1] = looks;
            return;
        }
        detail::pause();
    }
}

SLUICE_FN u64 grouped(u64 step, u64 tiles_m, u64 tiles_n, u64 group) { return tile_of(step, tiles_m, tiles_n, group); }

// evaluate: the tile of every step, for arguments out, steps, tiles_m,
// tiles_n, group.
SLUICE_EVALUATOR(evaluate, grouped)

} // namespace sluice
