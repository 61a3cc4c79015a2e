// The built-in kernels on the host's threads: one thread of the system for
// each thread of the grid, and a barrier per CTA that ThreadSanitizer knows.
#include "builtin.cpp"

#include "host.h"

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace sluice {
namespace host {

const Kernel *Kernel::all = nullptr;

static const Kernel builtin[] = {
    {"fill", fill},         {"tiled", tiled},       {"consumer", consumer}, {"script", script},
    {"matmul", matmul},     {"progress", progress}, {"evaluate", evaluate},
};

struct Abandoned {}; // ends a thread whose CTA has trapped

// Cta is what the threads of one block share.
class Cta {
  public:
    explicit Cta(unsigned threads) : threads(threads) {}

    void barrier() {
        std::unique_lock<std::mutex> lock(mutex);
        unsigned long phase = phases;
        if (++here == threads) {
            here = 0;
            phases++;
            turn.notify_all();
        }
        turn.wait(lock, [&] { return phases != phase || trapped; });
        if (trapped) throw Abandoned();
    }

    void *shared(const char *file, int line, unsigned long bytes) {
        std::lock_guard<std::mutex> lock(mutex);
        std::unique_ptr<char[]> &variable = variables[std::make_pair(std::string(file), line)];
        if (!variable) variable.reset(new char[bytes]());
        return variable.get();
    }

    void trap() {
        std::lock_guard<std::mutex> lock(mutex);
        trapped = true;
        turn.notify_all();
    }

    bool ended_well() {
        std::lock_guard<std::mutex> lock(mutex);
        return !trapped;
    }

  private:
    const unsigned threads;
    std::mutex mutex;
    std::condition_variable turn;
    unsigned here = 0;
    unsigned long phases = 0;
    bool trapped = false;
    std::map<std::pair<std::string, int>, std::unique_ptr<char[]>> variables;
};

// Place is where the running thread is in its grid.
struct Place {
    unsigned block, blocks, thread, threads;
    Cta *cta;
};

static thread_local Place place;

// Start holds a grid's threads back until all of them exist.
class Start {
  public:
    bool wait() {
        std::unique_lock<std::mutex> lock(mutex);
        turn.wait(lock, [&] { return decided; });
        return go;
    }
    void decide(bool verdict) {
        std::lock_guard<std::mutex> lock(mutex);
        decided = true;
        go = verdict;
        turn.notify_all();
    }

  private:
    std::mutex mutex;
    std::condition_variable turn;
    bool decided = false, go = false;
};

static void run(const Kernel &kernel, const word *args, Place here, Start &start) {
    if (!start.wait()) return;
    place = here;
    try {
        kernel.call(kernel.function, args);
    } catch (Abandoned) {
    }
}

static int launch(const Kernel &kernel, unsigned blocks, unsigned threads, const word *args) {
    Start start;
    std::vector<std::unique_ptr<Cta>> ctas;
    std::vector<std::thread> all;
    int result = SLUICE_HOST_OK;
    try {
        for (unsigned b = 0; b < blocks; b++) {
            ctas.emplace_back(new Cta(threads));
            for (unsigned t = 0; t < threads; t++)
                all.emplace_back(run, std::cref(kernel), args, Place{b, blocks, t, threads, ctas[b].get()},
                                 std::ref(start));
        }
    } catch (const std::system_error &) {
        result = SLUICE_HOST_THREADS;
    }
    start.decide(result == SLUICE_HOST_OK);
    for (std::thread &t : all) t.join();
    for (std::unique_ptr<Cta> &cta : ctas)
        if (!cta->ended_well()) result = SLUICE_HOST_TRAPPED;
    return result;
}

} // namespace host
} // namespace sluice

using sluice::host::place;

extern "C" {

unsigned sluice_host_block(void) { return place.block; }
unsigned sluice_host_blocks(void) { return place.blocks; }
unsigned sluice_host_thread(void) { return place.thread; }
unsigned sluice_host_threads(void) { return place.threads; }
void sluice_host_barrier(void) { place.cta->barrier(); }
void *sluice_host_shared(const char *file, int line, unsigned long bytes) {
    return place.cta->shared(file, line, bytes);
}
void sluice_host_pause(void) { std::this_thread::yield(); }
void sluice_host_trap(void) {
    place.cta->trap();
    throw sluice::host::Abandoned();
}

unsigned long long sluice_host_nanoseconds(void) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

int sluice_host_launch(const char *name, unsigned blocks, unsigned threads, const unsigned long long *args,
                       unsigned nargs) {
    using sluice::host::Kernel;
    const Kernel *kernel = Kernel::all;
    while (kernel && std::strcmp(kernel->name, name) != 0) kernel = kernel->next;
    if (!kernel) return SLUICE_HOST_UNKNOWN;
    if (kernel->nargs != nargs) return SLUICE_HOST_ARGUMENTS;
    if (blocks == 0 || threads == 0) return SLUICE_HOST_GRID;
    return sluice::host::launch(*kernel, blocks, threads, args);
}
}
