// The script kernel: each CTA works through a list of operations that the host
// wrote, so that tests and examples can act out any order of events.
#ifndef SLUICE_SCRIPT_H
#define SLUICE_SCRIPT_H

#include "pattern.h"

#if defined(SLUICE_HOST)
extern "C" unsigned long long sluice_host_nanoseconds(void);
#endif

namespace sluice {
namespace ops {

// An operation is 8 words: its code and seven arguments.
enum Code { END, FILL, MARK, WAIT, DELAY, SPIN, CHECK, AWAIT, STORE };

SLUICE_FN u64 nanoseconds() {
#if defined(SLUICE_HOST)
    return sluice_host_nanoseconds();
#elif defined(SLUICE_AMD)
    return 10 * __builtin_amdgcn_s_memrealtime(); // gfx9 counts at 100 MHz
#else
    u64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
#endif
}

SLUICE_FN void delay(u64 ns) {
    if (leader())
        for (u64 start = nanoseconds(); nanoseconds() - start < ns;) detail::pause();
    barrier();
}

// spin is integer work whose every step the compiler must make.
SLUICE_FN void spin(u64 iterations) {
    unsigned x = thread();
    for (u64 i = 0; i < iterations; i++) {
        x = x * 1664525u + 1013904223u;
#if defined(SLUICE_AMD)
        asm volatile("" : "+v"(x));
#else
        asm volatile("" : "+r"(x));
#endif
    }
}

SLUICE_FN Window window(const SLUICE_GLOBAL u64 *op) { return Window{op[1], op[2], op[3], op[4], op[5]}; }

SLUICE_FN void check(const SLUICE_GLOBAL u64 *op) {
    u64 errors = op[7];
    u64 wrong = wrong_bytes(window(op), op[6], thread(), threads());
    if (wrong) detail::count(errors, wrong);
    barrier();
    if (leader()) detail::count(errors + 16, 1);
}

} // namespace ops

// script runs the lists at program: word 0 is how many there are, word 1+b
// where list b starts (in words from program). CTAs without a list do nothing.
// The handle may be 0 where no list marks or waits.
SLUICE_KERNEL void script(u64 handle, u64 program) {
    const SLUICE_GLOBAL u64 *words = (const SLUICE_GLOBAL u64 *)program;
    if (block() >= words[0]) return;
    const Handle *h = (const Handle *)handle;
    for (const SLUICE_GLOBAL u64 *op = words + words[1 + block()]; op[0] != ops::END; op += 8) {
        switch (op[0]) {
        case ops::FILL: write_window(ops::window(op), op[6], thread(), threads()); break;
        case ops::MARK: mark_ready(h, op[1]); break;
        case ops::WAIT: wait(h, op[1]); break;
        case ops::DELAY: ops::delay(op[1]); break;
        case ops::SPIN: ops::spin(op[1]); break;
        case ops::CHECK: ops::check(op); break;
        case ops::AWAIT: await(op[1], op[2]); break;
        case ops::STORE: publish(op[1], op[2]); break;
        default: detail::trap();
        }
    }
}

} // namespace sluice

#endif
