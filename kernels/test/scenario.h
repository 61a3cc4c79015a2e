// What the kernels must do, acted out on any backend (host threads, a GPU) that
// has memory, launches and copies.
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
    // alloc returns the address of zeroed memory, aligned to 256 bytes, that
    // lives as long as the backend. Nothing allocates while kernels wait.
    virtual word alloc(std::size_t bytes) = 0;
    virtual void write(word to, const void *from, std::size_t bytes) = 0;
    virtual void read(void *to, word from, std::size_t bytes) = 0;
    // launch starts a kernel beside all others.
    virtual Run *launch(const char *kernel, unsigned blocks, unsigned threads, const std::vector<word> &args) = 0;

    // What copy engines do: look at a gate, copy a window whose rows are pitch
    // bytes apart, signal.
    virtual unsigned gate(word addr) = 0;
    virtual void copy(word to, word from, word width, word height, word pitch) = 0;
    virtual void signal(word addr, word round) = 0;
};

struct Region {
    word offset, width, height, pitch;
};

// A World is ranks with a buffer, a gate table, a handle and a fault row each.
class World {
  public:
    struct Rank {
        word buffer, gates, handle, faults;
    };
    std::vector<Rank> ranks;
    std::vector<std::vector<Region>> regions; // of every chunk

    // Rank r owns counts[r] chunks; chunk c has writers[c] writers.
    World(Backend &on, std::size_t buffer, const std::vector<word> &counts, const std::vector<word> &writers,
          word first_round);
    void round(word r); // of every handle
    // carry is a rank's copy engines, for one round.
    void carry(unsigned from, word r);
    sluice_gate_row gates(unsigned rank, word chunk);
    void set_gates(unsigned rank, word chunk, const sluice_gate_row &row);
    sluice_fault_row faults(unsigned rank);

  private:
    Backend &on;
    std::vector<word> owner;
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
