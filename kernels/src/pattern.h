// The data that built-in producers write and consumers expect: a function of a
// seed and the position in the buffer, so that stale and misplaced bytes show.
#ifndef SLUICE_PATTERN_H
#define SLUICE_PATTERN_H

#include "sluice.h"

namespace sluice {

typedef SLUICE_GLOBAL unsigned char *Bytes;

// lane holds the bytes at positions 8k to 8k+7, the lowest first.
SLUICE_FN u64 lane(u64 seed, u64 k) {
    u64 x = k * 0x9E3779B97F4A7C15ull + seed * 0xBF58476D1CE4E5B9ull;
    x ^= x >> 29;
    x *= 0x94D049BB133111EBull;
    return x ^ (x >> 32);
}

// seed_of is the seed of a rank's data in a round.
SLUICE_FN u64 seed_of(u64 base, u64 rank, u64 round) {
    return base + (rank + 1) * 0x100000001B3ull + round * 0x9E3779B1ull;
}

// A window is height rows of width bytes, pitch apart, offset bytes into a
// buffer.
struct Window {
    u64 buffer, offset, width, height, pitch;
};

// each_lane calls visit(k, lo, hi) for the share of one worker of many: the
// bytes at positions lo to hi-1 lie in the window and in lane k.
template <class Visit>
SLUICE_FN void each_lane(Window w, u64 worker, u64 workers, Visit visit) {
    if (w.width == 0 || w.height == 0) return;
    if (w.width == w.pitch) {
        w.width *= w.height;
        w.height = 1;
    }
    u64 per_row = w.width / 8 + 2; // a row that starts or ends inside a lane
    for (u64 i = worker; i < per_row * w.height; i += workers) {
        u64 row, j;
        if (per_row * w.height >> 32 == 0) { // GPUs divide 32 bits much faster
            row = (unsigned)i / (unsigned)per_row;
            j = (unsigned)i % (unsigned)per_row;
        } else {
            row = i / per_row;
            j = i % per_row;
        }
        u64 start = w.offset + row * w.pitch, end = start + w.width;
        u64 k = start / 8 + j, lo = 8 * k, hi = lo + 8;
        if (lo < start) lo = start;
        if (hi > end) hi = end;
        if (lo < hi) visit(k, lo, hi);
    }
}

struct WriteLane {
    u64 buffer, seed;
    SLUICE_FN void operator()(u64 k, u64 lo, u64 hi) const {
        u64 value = lane(seed, k);
        if (hi - lo == 8 && buffer % 8 == 0) {
            ((detail::Word)buffer)[k] = value;
            return;
        }
        for (u64 at = lo; at < hi; at++) ((Bytes)buffer)[at] = (unsigned char)(value >> 8 * (at % 8));
    }
};

// write_window writes a worker's share of the window.
SLUICE_FN void write_window(Window w, u64 seed, u64 worker, u64 workers) {
    each_lane(w, worker, workers, WriteLane{w.buffer, seed});
}

struct CheckLane {
    u64 buffer, seed;
    u64 *wrong;
    SLUICE_FN void operator()(u64 k, u64 lo, u64 hi) const {
        u64 value = lane(seed, k);
        if (hi - lo == 8 && buffer % 8 == 0 && ((detail::Word)buffer)[k] == value) return;
        for (u64 at = lo; at < hi; at++) *wrong += ((Bytes)buffer)[at] != (unsigned char)(value >> 8 * (at % 8));
    }
};

// wrong_bytes counts those of a worker's share that do not hold the pattern.
SLUICE_FN u64 wrong_bytes(Window w, u64 seed, u64 worker, u64 workers) {
    u64 wrong = 0;
    each_lane(w, worker, workers, CheckLane{w.buffer, seed, &wrong});
    return wrong;
}

} // namespace sluice

#endif
