// What the kernels must do, acted out on memory that host and kernels share.
// A backend (host threads, a GPU) supplies it and the launches.
#ifndef SLUICE_SCENARIO_H
#define SLUICE_SCENARIO_H

#include <cstddef>
#include <string>
#include <vector>

#include "sluice.h"

namespace scenario {

typedef unsigned long long word;

// A Run is a launch under way.
class Run {
  public:
    virtual ~Run() {}
    virtual int wait() = 0; // 0, or what the launch failed with
};

class Backend {
  public:
    virtual ~Backend() {}
    // alloc returns zeroed memory whose pointer is also its address, aligned to
    // 256 bytes, that lives as long as the backend.
    virtual void *alloc(std::size_t bytes) = 0;
    // launch starts a kernel beside all others.
    virtual Run *launch(const char *kernel, unsigned blocks, unsigned threads, const std::vector<word> &args) = 0;
    virtual void yield() = 0;
};

struct Region {
    word offset, width, height, pitch;
};

// A World is ranks with a buffer, a gate table and a handle each.
struct World {
    struct Rank {
        unsigned char *buffer;
        sluice_gate_row *gates;
        sluice_handle *handle;
        sluice_fault_row *faults;
    };
    std::vector<Rank> ranks;
    std::vector<std::vector<Region>> regions; // of every chunk
    std::vector<word> owner;

    // each rank owns counts[rank] chunks of so many writers.
    World(Backend &on, std::size_t buffer, const std::vector<word> &counts, const std::vector<word> &writers,
          word first_round);
    void round(word r);                        // of every handle
    void carry(Backend &on, unsigned from, word r); // a rank's copy engines, for one round
};

// Each returns how much was wrong, and says what on standard error.
unsigned long gather(Backend &on, unsigned rounds, unsigned ctas, unsigned threads);
unsigned long windows(Backend &on);
unsigned long scripts(Backend &on);
unsigned long faults(Backend &on);
unsigned long progress(Backend &on);
unsigned long looks(Backend &on);
unsigned long orders(Backend &on);
unsigned long product(Backend &on, unsigned threads);

// all runs every scenario and returns 0 if nothing was wrong.
int all(Backend &on, unsigned rounds, unsigned ctas, unsigned threads, unsigned product_threads);

} // namespace scenario

#endif
