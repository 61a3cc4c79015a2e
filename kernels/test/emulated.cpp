// The scenarios on the host's threads. `emulated` runs them all; `emulated
// litmus ROUNDS` runs what ThreadSanitizer should watch; `emulated order M N
// GROUP` and `emulated pattern SEED POSITION BYTES` print what kernels compute,
// for comparison with other implementations; `emulated trap` launches with a
// handle of another layout.
#include "../src/host.h"
#include "scenario.h"

#include "probe.cpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

namespace {

const sluice::host::Kernel probes[] = {{"peek", probe::peek}, {"snake_order", probe::snake_order}};

class ThreadRun : public scenario::Run {
  public:
    ThreadRun(std::string kernel, unsigned blocks, unsigned threads, std::vector<scenario::word> args)
        : thread([=] { result = sluice_host_launch(kernel.c_str(), blocks, threads, args.data(), args.size()); }) {}
    ~ThreadRun() override { wait(); }
    int wait() override {
        if (thread.joinable()) thread.join();
        return result;
    }

  private:
    int result = 0;
    std::thread thread;
};

class Host : public scenario::Backend {
  public:
    ~Host() override {
        for (void *p : all) std::free(p);
    }
    scenario::word alloc(std::size_t bytes) override {
        void *p = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
        std::memset(p, 0, bytes);
        all.push_back(p);
        return (scenario::word)p;
    }
    void write(scenario::word to, const void *from, std::size_t bytes) override { std::memcpy((void *)to, from, bytes); }
    void read(void *to, scenario::word from, std::size_t bytes) override { std::memcpy(to, (void *)from, bytes); }
    scenario::Run *launch(const char *kernel, unsigned blocks, unsigned threads,
                          const std::vector<scenario::word> &args) override {
        return new ThreadRun(kernel, blocks, threads, args);
    }
    unsigned gate(scenario::word addr) override {
        std::this_thread::yield();
        return __atomic_load_n((unsigned *)addr, __ATOMIC_ACQUIRE);
    }
    void copy(scenario::word to, scenario::word from, scenario::word width, scenario::word height,
              scenario::word pitch) override {
        for (scenario::word row = 0; row < height; row++)
            std::memcpy((void *)(to + row * pitch), (void *)(from + row * pitch), width);
    }
    void signal(scenario::word addr, scenario::word round) override {
        __atomic_store_n((scenario::word *)addr, round, __ATOMIC_RELEASE);
    }

  private:
    std::vector<void *> all;
};

scenario::word number(const char *text) { return std::strtoull(text, nullptr, 0); }

int order(scenario::word m, scenario::word n, scenario::word group) {
    std::vector<scenario::word> out(m * n);
    scenario::word args[] = {(scenario::word)out.data(), m * n, m, n, group};
    if (int failed = sluice_host_launch("evaluate", 2, 2, args, 5)) return failed;
    for (scenario::word tile : out) std::printf("%llu\n", tile);
    return 0;
}

int pattern(scenario::word seed, scenario::word position, scenario::word bytes) {
    std::vector<unsigned char> buffer(position + bytes + 8);
    scenario::word at = (scenario::word)buffer.data();
    scenario::word program[] = {1, 2, 1, at, position, bytes, 1, bytes, seed, 0, 0};
    std::vector<scenario::word> words(program, program + 11);
    words.resize(24);
    scenario::word args[] = {0, (scenario::word)words.data()};
    if (int failed = sluice_host_launch("script", 1, 3, args, 2)) return failed;
    for (scenario::word i = 0; i < bytes; i++) std::printf("%02x", buffer[position + i]);
    std::printf("\n");
    return 0;
}

int trap(Host &on) {
    scenario::World w(on, 64, {1}, {1}, 1);
    scenario::World::Rank &me = w.ranks[0];
    ((sluice_handle *)me.handle)->version = SLUICE_ABI_VERSION + 1;
    scenario::word args[] = {me.handle, me.buffer, 0, 8, 1, 8, 0, 0};
    if (sluice_host_launch("fill", 2, 4, args, 8) != SLUICE_HOST_TRAPPED) return 1;
    return w.gates(0, 0).writers != 0;
}

} // namespace

int main(int argc, char **argv) {
    Host on;
    std::string command = argc > 1 ? argv[1] : "";
    if (command == "") return scenario::all(on, 20, 3, 4, 5);
    if (command == "litmus" && argc == 3)
        return scenario::gather(on, (unsigned)number(argv[2]), 2, 3) + scenario::scripts(on) + scenario::looks(on) != 0;
    if (command == "order" && argc == 5) return order(number(argv[2]), number(argv[3]), number(argv[4]));
    if (command == "pattern" && argc == 5) return pattern(number(argv[2]), number(argv[3]), number(argv[4]));
    if (command == "trap") return trap(on);
    std::fprintf(stderr, "emulated: no such command; see the top of emulated.cpp\n");
    return 64;
}
