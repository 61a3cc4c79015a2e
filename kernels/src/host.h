/* host.h: runs kernels that include sluice.h on the host's threads. */
#ifndef SLUICE_HOST_H
#define SLUICE_HOST_H

#ifdef __cplusplus
extern "C" {
#endif

/* What sluice_host_launch returns. */
enum {
    SLUICE_HOST_OK = 0,
    SLUICE_HOST_UNKNOWN = 1,   /* no kernel has that name */
    SLUICE_HOST_ARGUMENTS = 2, /* the kernel takes another number of arguments */
    SLUICE_HOST_GRID = 3,      /* no blocks or no threads */
    SLUICE_HOST_THREADS = 4,   /* the system has no room for so many threads; nothing ran */
    SLUICE_HOST_TRAPPED = 5    /* the kernel trapped */
};

/* sluice_host_launch runs a kernel of that name with nargs 64-bit arguments,
 * blocks CTAs of so many threads, all of them at the same time, and returns
 * when all have ended. Addresses among the arguments are pointers. It may be
 * called from many threads at once. */
int sluice_host_launch(const char *name, unsigned blocks, unsigned threads, const unsigned long long *args,
                       unsigned nargs);

#ifdef __cplusplus
}

#include <cstddef>
#include <utility>

namespace sluice {
namespace host {

typedef unsigned long long word;

// A Kernel can be launched by name once it has been constructed.
struct Kernel {
    const char *name;
    unsigned nargs;
    void *function;
    void (*call)(void *function, const word *args);
    const Kernel *next;

    template <class... Args> Kernel(const char *name, void (*f)(Args...))
        : name(name), nargs(sizeof...(Args)), function(reinterpret_cast<void *>(f)), call(&spread<Args...>), next(all) {
        all = this;
    }

    static const Kernel *all;

  private:
    template <class... Args> static void spread(void *function, const word *args) {
        apply(reinterpret_cast<void (*)(Args...)>(function), args, std::index_sequence_for<Args...>());
    }
    template <class... Args, std::size_t... i>
    static void apply(void (*f)(Args...), const word *args, std::index_sequence<i...>) {
        f(args[i]...);
    }
};

} // namespace host
} // namespace sluice
#endif

#endif
