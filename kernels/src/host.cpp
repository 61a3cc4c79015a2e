// The built-in kernels on the host's threads: one thread of the system for
// each thread of the grid, kept for the next one, and a barrier per CTA that
// ThreadSanitizer knows.
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

// Finish lets a launch wait for the last of its threads.
class Finish {
  public:
    explicit Finish(size_t threads) : left(threads) {}

    void one() {
        std::lock_guard<std::mutex> lock(mutex);
        if (--left == 0) turn.notify_all();
    }
    void wait() {
        std::unique_lock<std::mutex> lock(mutex);
        turn.wait(lock, [&] { return left == 0; });
    }

  private:
    std::mutex mutex;
    std::condition_variable turn;
    size_t left;
};

// Part is what one thread does in a grid.
struct Part {
    const Kernel *kernel;
    const word *args;
    Place here;
    Finish *finish;

    void run() const {
        place = here;
        try {
            kernel->call(kernel->function, args);
        } catch (Abandoned) {
        }
        finish->one();
    }
};

// Worker is a thread of the system that runs a part, then waits for the next: to
// make a thread takes longer than most parts do.
class Worker {
  public:
    Worker() { std::thread([this] { work(); }).detach(); }

    // give hands the worker a part; one without a kernel ends it.
    void give(const Part &next) {
        std::lock_guard<std::mutex> lock(mutex);
        part = next;
        given = true;
        turn.notify_all();
    }

  private:
    std::mutex mutex;
    std::condition_variable turn;
    Part part;
    bool given = false;

    void work() {
        while (take()) part.run();
        delete this;
    }

    bool take() {
        std::unique_lock<std::mutex> lock(mutex);
        turn.wait(lock, [&] { return given; });
        given = false;
        return part.kernel != nullptr;
    }
};

// Crew is the workers that have nothing to do.
class Crew {
  public:
    // take returns workers, of which some are new.
    std::vector<Worker *> take(size_t n) {
        std::vector<Worker *> taken;
        try {
            while (taken.size() < n) taken.push_back(next());
        } catch (const std::system_error &) {
            put(taken);
            throw;
        }
        return taken;
    }

    void put(const std::vector<Worker *> &workers) {
        std::lock_guard<std::mutex> lock(mutex);
        for (Worker *w : workers)
            if (idle.size() < most)
                idle.push_back(w);
            else
                w->give(Part{});
    }

  private:
    static const size_t most = 512; // that are kept
    std::mutex mutex;
    std::vector<Worker *> idle;

    Worker *next() {
        std::lock_guard<std::mutex> lock(mutex);
        if (idle.empty()) return new Worker;
        Worker *w = idle.back();
        idle.pop_back();
        return w;
    }
};

// The crew is never destroyed: its workers wait in it while the process ends.
static Crew &crew = *new Crew;

// launch runs a grid once all of its threads exist.
static int launch(const Kernel &kernel, unsigned blocks, unsigned threads, const word *args) {
    size_t n = size_t(blocks) * threads;
    std::vector<Worker *> workers;
    try {
        workers = crew.take(n);
    } catch (const std::system_error &) {
        return SLUICE_HOST_THREADS;
    }
    Finish finish(n);
    std::vector<std::unique_ptr<Cta>> ctas;
    for (unsigned b = 0; b < blocks; b++) ctas.emplace_back(new Cta(threads));
    for (size_t i = 0; i < n; i++) {
        unsigned b = unsigned(i / threads), t = unsigned(i % threads);
        workers[i]->give(Part{&kernel, args, Place{b, blocks, t, threads, ctas[b].get()}, &finish});
    }
    finish.wait();
    crew.put(workers);
    for (std::unique_ptr<Cta> &cta : ctas)
        if (!cta->ended_well()) return SLUICE_HOST_TRAPPED;
    return SLUICE_HOST_OK;
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
