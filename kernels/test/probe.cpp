// A module of a user's own: a tile order that is not built in, with its
// evaluator, and a consumer that looks at a chunk a limited number of times.
#include "sluice.h"

namespace probe {

using sluice::u64;

// snake walks tile rows from left to right and back in turn.
SLUICE_FN u64 snake(u64 step, u64 tiles_m, u64 tiles_n, u64) {
    u64 row = step / tiles_n, column = step % tiles_n;
    if (row >= tiles_m) return 0;
    return row * tiles_n + (row % 2 ? tiles_n - 1 - column : column);
}

SLUICE_EVALUATOR(snake_order, snake)

// peek looks for the chunk at most limit times and, once it is here, copies
// the word at from. out: whether it is here, looks made, the word.
SLUICE_KERNEL void peek(u64 handle, u64 chunk, u64 limit, u64 from, u64 out) {
    const sluice::Handle *h = (const sluice::Handle *)handle;
    u64 looks = 0;
    bool here = false;
    while (!here && looks < limit) {
        here = sluice::arrived(h, chunk);
        looks++;
    }
    // every thread reads, so that each depends on the order that arrived makes
    u64 word = here ? ((sluice::detail::Word)from)[0] : 0;
    u64 row = out + 24 * sluice::thread();
    ((sluice::detail::Word)row)[0] = here;
    ((sluice::detail::Word)row)[1] = looks;
    ((sluice::detail::Word)row)[2] = word;
}

} // namespace probe
