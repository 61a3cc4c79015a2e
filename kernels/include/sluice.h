/* sluice.h: how a GPU kernel takes part in a triggered plan.
 *
 * A kernel gets the handle that Start returned and calls, with its whole CTA
 * and outside divergent branches:
 *
 *   sluice::mark_ready(handle, chunk)   after its writes to the chunk
 *   sluice::arrived(handle, chunk)      has the chunk arrived here?
 *   sluice::wait(handle, chunk)         until it has; returns the polls made
 *
 * HIP C++, CUDA C++ (nvcc or clang) and plain C++ take this file, with or
 * without the vendor's headers. C sees the layouts only. In plain C++ the host
 * runs the kernels: whoever links supplies the sluice_host_* functions.
 */
#ifndef SLUICE_H
#define SLUICE_H

/* ---- Layouts: words of 8 bytes, the same for host and device. ---- */

typedef unsigned long long sluice_u64;

#define SLUICE_ABI_VERSION 1

/* One row per chunk in every rank's gate table. Gates only grow: round n is
 * done at ready >= n (low 32 bits, unsigned), arrival >= n, writers = n times
 * the chunk's writers. The owner uses ready and writers, the others arrival. */
typedef struct sluice_gate_row {
    sluice_u64 ready;   /* round up to which the chunk is marked ready */
    sluice_u64 arrival; /* round up to which the chunk has arrived */
    sluice_u64 writers; /* marks so far, over all rounds */
    sluice_u64 zeros[5];
} sluice_gate_row;

/* One per rank: what marks did wrong. */
typedef struct sluice_fault_row {
    sluice_u64 foreign; /* marks of chunks that are not the rank's or do not exist */
    sluice_u64 last;    /* the chunk of the last such mark */
    sluice_u64 extra;   /* marks beyond the chunk's writers */
    sluice_u64 zeros[5];
} sluice_fault_row;

/* Two words for each chunk of all ranks, right behind the handle. */
typedef struct sluice_chunk {
    sluice_u64 writers; /* marks that complete it in a round */
    sluice_u64 owner;   /* rank that writes it */
} sluice_chunk;

typedef struct sluice_handle {
    sluice_u64 version; /* SLUICE_ABI_VERSION */
    sluice_u64 chunks;  /* chunks of all ranks */
    sluice_u64 rank;    /* rank that the handle is for */
    sluice_u64 round;   /* round that was started; changes only between kernels */
    sluice_u64 gates;   /* address of the rank's own gate table */
    sluice_u64 world;   /* ranks in all */
    sluice_u64 first;   /* the rank's first chunk */
    sluice_u64 own;     /* how many chunks the rank owns */
    sluice_u64 tables;  /* address of a word per rank: its gate table's address */
    sluice_u64 faults;  /* address of the fault row */
    sluice_u64 trace;   /* address of the trace buffer, or 0 */
} sluice_handle;

#ifdef __cplusplus

/* ---- The languages. ---- */

#if defined(__HIP__)
#define SLUICE_AMD 1
#elif defined(__CUDACC__) || defined(__CUDA__)
#define SLUICE_NVIDIA 1
#else
#define SLUICE_HOST 1
#endif

#if defined(SLUICE_HOST)
#define SLUICE_FN inline
#define SLUICE_BOTH inline
#define SLUICE_KERNEL extern "C"
#define SLUICE_GLOBAL
#elif defined(__clang__)
#define SLUICE_FN __attribute__((device, always_inline)) inline
#define SLUICE_BOTH __attribute__((host, device, always_inline)) inline
#define SLUICE_KERNEL extern "C" __attribute__((global))
#define SLUICE_GLOBAL __attribute__((address_space(1)))
#else
#define SLUICE_FN __device__ __forceinline__
#define SLUICE_BOTH __host__ __device__ __forceinline__
#define SLUICE_KERNEL extern "C" __global__
#define SLUICE_GLOBAL
#endif

/* A CTA's own variable: SLUICE_SHARED(type, name) declares a reference. */
#if defined(SLUICE_HOST)
#define SLUICE_SHARED(type, name) \
    type &name = *static_cast<type *>(sluice_host_shared(__FILE__, __LINE__, sizeof(type)))
#elif defined(__clang__)
#define SLUICE_SHARED(type, name) \
    static __attribute__((shared, aligned(16))) type name
#else
#define SLUICE_SHARED(type, name) static __shared__ __align__(16) type name
#endif

#if defined(SLUICE_HOST)
extern "C" {
unsigned sluice_host_block(void);
unsigned sluice_host_blocks(void);
unsigned sluice_host_thread(void);
unsigned sluice_host_threads(void);
void sluice_host_barrier(void); /* of the CTA; orders its threads' memory */
void *sluice_host_shared(const char *file, int line, unsigned long bytes);
void sluice_host_pause(void); /* gives way while something is polled */
[[noreturn]] void sluice_host_trap(void);
}
#endif

#if defined(SLUICE_AMD) && defined(__HIP_DEVICE_COMPILE__) && !defined(__GFX9__)
#error "sluice.h knows AMD's gfx9 family (gfx90a, gfx942, gfx950): other families count stores apart from loads"
#endif

namespace sluice {

typedef sluice_u64 u64;
typedef sluice_gate_row GateRow;
typedef sluice_fault_row FaultRow;
typedef sluice_chunk ChunkWords;
typedef sluice_handle Handle;

/* ---- Where a thread is. ---- */

/* block is the CTA ("program"), of blocks in a row. */
SLUICE_FN unsigned block() {
#if defined(SLUICE_HOST)
    return sluice_host_block();
#elif defined(SLUICE_AMD)
    return __builtin_amdgcn_workgroup_id_x();
#elif defined(__clang__)
    return (unsigned)__nvvm_read_ptx_sreg_ctaid_x();
#else
    return blockIdx.x;
#endif
}

SLUICE_FN unsigned blocks() {
#if defined(SLUICE_HOST)
    return sluice_host_blocks();
#elif defined(SLUICE_AMD)
    return __builtin_amdgcn_grid_size_x() / __builtin_amdgcn_workgroup_size_x();
#elif defined(__clang__)
    return (unsigned)__nvvm_read_ptx_sreg_nctaid_x();
#else
    return gridDim.x;
#endif
}

/* thread is the thread in its CTA, of threads in a row. */
SLUICE_FN unsigned thread() {
#if defined(SLUICE_HOST)
    return sluice_host_thread();
#elif defined(SLUICE_AMD)
    return __builtin_amdgcn_workitem_id_x();
#elif defined(__clang__)
    return (unsigned)__nvvm_read_ptx_sreg_tid_x();
#else
    return threadIdx.x;
#endif
}

SLUICE_FN unsigned threads() {
#if defined(SLUICE_HOST)
    return sluice_host_threads();
#elif defined(SLUICE_AMD)
    return __builtin_amdgcn_workgroup_size_x();
#elif defined(__clang__)
    return (unsigned)__nvvm_read_ptx_sreg_ntid_x();
#else
    return blockDim.x;
#endif
}

/* leader is true in one thread of the CTA, also where CTAs have more than one
 * dimension. */
SLUICE_FN bool leader() {
#if defined(SLUICE_HOST)
    return sluice_host_thread() == 0;
#elif defined(SLUICE_AMD)
    return (__builtin_amdgcn_workitem_id_x() | __builtin_amdgcn_workitem_id_y() |
            __builtin_amdgcn_workitem_id_z()) == 0;
#elif defined(__clang__)
    return (__nvvm_read_ptx_sreg_tid_x() | __nvvm_read_ptx_sreg_tid_y() | __nvvm_read_ptx_sreg_tid_z()) == 0;
#else
    return (threadIdx.x | threadIdx.y | threadIdx.z) == 0;
#endif
}

/* barrier waits for the whole CTA and orders its threads' memory. */
SLUICE_FN void barrier() {
#if defined(SLUICE_HOST)
    sluice_host_barrier();
#elif defined(SLUICE_AMD)
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
#else
    __syncthreads();
#endif
}

/* ---- Steps of marking and waiting. Each does one thing, so that the proofs
 * can take it out and see it missed. ---- */

namespace detail {

typedef SLUICE_GLOBAL u64 *Word;
typedef SLUICE_GLOBAL unsigned *Half;

/* stores_done waits until this wave's stores have left for the L2. AMD's
 * compilers do not put this wait before a bare barrier. */
SLUICE_FN void stores_done() {
#if defined(SLUICE_AMD)
    asm volatile("s_waitcnt vmcnt(0) lgkmcnt(0)" ::: "memory");
#endif
}

/* write_back moves what the CTA wrote from its L2 to memory and waits until it
 * is there. One piece of assembly, because compilers drop the wait: they do not
 * count the write-back as outstanding. Elsewhere add_release does this. */
SLUICE_FN void write_back() {
#if defined(SLUICE_AMD) && (defined(__gfx942__) || defined(__gfx950__))
    asm volatile("buffer_wbl2 sc0 sc1\n\ts_waitcnt vmcnt(0)" ::: "memory");
#elif defined(SLUICE_AMD) && defined(__gfx90a__)
    asm volatile("buffer_wbl2\n\ts_waitcnt vmcnt(0)" ::: "memory");
#elif defined(SLUICE_AMD)
    asm volatile("s_waitcnt vmcnt(0)" ::: "memory"); /* this L2 holds nothing back */
#endif
}

/* add_release adds 1 at system scope and returns what was there. It follows
 * write_back; where there is none it is itself acquire and release. */
SLUICE_FN u64 add_release(u64 addr) {
#if defined(SLUICE_HOST)
    return __atomic_fetch_add((u64 *)addr, 1ull, __ATOMIC_ACQ_REL);
#elif defined(SLUICE_AMD)
    return __hip_atomic_fetch_add((Word)addr, 1ull, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
#else
    u64 was;
    asm volatile("atom.acq_rel.sys.add.u64 %0, [%1], 1;" : "=l"(was) : "l"(addr) : "memory");
    return was;
#endif
}

/* store_release stores a word at system scope behind everything before it,
 * given write_back. */
SLUICE_FN void store_release(u64 addr, u64 value) {
#if defined(SLUICE_HOST)
    __atomic_store_n((u64 *)addr, value, __ATOMIC_RELEASE);
#elif defined(SLUICE_AMD)
    __hip_atomic_store((Word)addr, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
#else
    asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(addr), "l"(value) : "memory");
#endif
}

/* load_relaxed is one poll of a word's low half. */
SLUICE_FN unsigned load_relaxed(u64 addr) {
#if defined(SLUICE_HOST)
    return __atomic_load_n((unsigned *)addr, __ATOMIC_RELAXED);
#elif defined(SLUICE_AMD)
    return __hip_atomic_load((Half)addr, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
#else
    unsigned v;
    asm volatile("ld.relaxed.sys.u32 %0, [%1];" : "=r"(v) : "l"(addr) : "memory");
    return v;
#endif
}

/* load_acquire reads a word's low half; what the CTA reads after the next
 * barrier is at least as new. */
SLUICE_FN unsigned load_acquire(u64 addr) {
#if defined(SLUICE_HOST)
    return __atomic_load_n((unsigned *)addr, __ATOMIC_ACQUIRE);
#elif defined(SLUICE_AMD)
    return __hip_atomic_load((Half)addr, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM);
#else
    unsigned v;
    asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(v) : "l"(addr) : "memory");
    return v;
#endif
}

/* count adds to a counter that orders nothing. */
SLUICE_FN void count(u64 addr, u64 n) {
#if defined(SLUICE_HOST)
    __atomic_fetch_add((u64 *)addr, n, __ATOMIC_RELAXED);
#elif defined(SLUICE_AMD)
    (void)__hip_atomic_fetch_add((Word)addr, n, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
#else
    asm volatile("red.relaxed.sys.add.u64 [%0], %1;" ::"l"(addr), "l"(n) : "memory");
#endif
}

/* note leaves a value that orders nothing. */
SLUICE_FN void note(u64 addr, u64 value) {
#if defined(SLUICE_HOST)
    __atomic_store_n((u64 *)addr, value, __ATOMIC_RELAXED);
#elif defined(SLUICE_AMD)
    (void)__hip_atomic_exchange((Word)addr, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
#else
    asm volatile("st.relaxed.sys.u64 [%0], %1;" ::"l"(addr), "l"(value) : "memory");
#endif
}

/* pause makes room between two polls. */
SLUICE_FN void pause() {
#if defined(SLUICE_HOST)
    sluice_host_pause();
#elif defined(SLUICE_AMD)
    __builtin_amdgcn_s_sleep(1);
#endif
}

/* trap ends the kernel with an error. */
SLUICE_FN void trap() {
#if defined(SLUICE_HOST)
    sluice_host_trap();
#elif defined(__clang__)
    __builtin_trap();
#else
    __trap();
#endif
}

/* reached compares as copy engines do: low 32 bits, unsigned. */
SLUICE_FN bool reached(unsigned gate, u64 round) { return gate >= (unsigned)round; }

typedef const SLUICE_GLOBAL Handle *HandlePtr;

/* open checks the handle: a kernel built for another layout must not touch a
 * gate. */
SLUICE_FN HandlePtr open(const Handle *handle) {
    HandlePtr h = (HandlePtr)(u64)handle;
    if (h->version != SLUICE_ABI_VERSION) trap();
    return h;
}

SLUICE_FN const SLUICE_GLOBAL ChunkWords *chunk_words(HandlePtr h, u64 chunk) {
    return (const SLUICE_GLOBAL ChunkWords *)(h + 1) + chunk;
}

SLUICE_FN u64 gate_row(HandlePtr h, u64 chunk) { return h->gates + chunk * sizeof(GateRow); }

SLUICE_FN void foreign(HandlePtr h, u64 chunk) {
    count(h->faults + __builtin_offsetof(FaultRow, foreign), 1);
    note(h->faults + __builtin_offsetof(FaultRow, last), chunk);
}

/* mark is the leader's part of mark_ready. The handle is read before the
 * write-back, so that nothing lies between that and the add. */
SLUICE_FN void mark(const Handle *handle, u64 chunk) {
    HandlePtr h = open(handle);
    if (chunk - h->first >= h->own) {
        foreign(h, chunk);
        return;
    }
    u64 row = gate_row(h, chunk), round = h->round, faults = h->faults;
    u64 complete = round * chunk_words(h, chunk)->writers;
    write_back();
    u64 marks = add_release(row + __builtin_offsetof(GateRow, writers)) + 1;
    if (marks == complete)
        store_release(row + __builtin_offsetof(GateRow, ready), round);
    else if (marks > complete)
        count(faults + __builtin_offsetof(FaultRow, extra), 1);
}

/* gate is the address of the word that tells this rank of the chunk. */
SLUICE_FN u64 gate(HandlePtr h, u64 chunk) {
    bool own = chunk - h->first < h->own;
    return gate_row(h, chunk) + (own ? __builtin_offsetof(GateRow, ready) : __builtin_offsetof(GateRow, arrival));
}

/* poll looks until the low half at addr has reached value, then acquires. It
 * returns the looks it took. One thread's work. */
SLUICE_FN u64 poll(u64 addr, u64 value) {
    u64 polls = 1;
    for (; !reached(load_relaxed(addr), value); polls++) pause();
    (void)load_acquire(addr);
    return polls;
}

/* uniform gives the whole CTA what the leader passed. */
SLUICE_FN u64 uniform(u64 v) {
    SLUICE_SHARED(u64, word);
    if (leader()) word = v;
    barrier();
    v = word;
    barrier();
    return v;
}

} /* namespace detail */

/* ---- The view. ---- */

/* mark_ready says that this CTA's writes to the chunk (a global id) are made.
 * The whole CTA calls it. The mark that completes the round opens the gate; a
 * mark of a chunk that is not this rank's is counted in the fault row and
 * dropped, and one too many is counted there. */
SLUICE_FN void mark_ready(const Handle *handle, u64 chunk) {
    detail::stores_done();
    barrier();
    if (leader()) detail::mark(handle, chunk);
}

/* arrived tells the whole CTA whether the chunk of this round is here (a
 * chunk of this rank's own: whether it is marked ready). What is read after
 * true is the round's data. A chunk that does not exist is counted in the
 * fault row and has arrived. */
SLUICE_FN bool arrived(const Handle *handle, u64 chunk) {
    u64 here = 0;
    if (leader()) {
        detail::HandlePtr h = detail::open(handle);
        if (chunk < h->chunks) {
            u64 round = h->round;
            here = detail::reached(detail::load_acquire(detail::gate(h, chunk)), round);
        } else {
            detail::foreign(h, chunk);
            here = 1;
        }
    }
    return detail::uniform(here) != 0;
}

/* wait returns once the chunk has arrived, with the number of polls it took
 * (0 for a chunk that does not exist, which is counted in the fault row). The
 * whole CTA calls it and gets the same number. */
SLUICE_FN u64 wait(const Handle *handle, u64 chunk) {
    u64 polls = 0;
    if (leader()) {
        detail::HandlePtr h = detail::open(handle);
        if (chunk < h->chunks) {
            u64 round = h->round;
            polls = detail::poll(detail::gate(h, chunk), round);
        } else {
            detail::foreign(h, chunk);
        }
    }
    return detail::uniform(polls);
}

/* await is wait for any word: until its low 32 bits are at least value. */
SLUICE_FN u64 await(u64 addr, u64 value) { return detail::uniform(leader() ? detail::poll(addr, value) : 0); }

/* publish stores a word that says: what this CTA wrote is there. */
SLUICE_FN void publish(u64 addr, u64 value) {
    detail::stores_done();
    barrier();
    if (leader()) {
        detail::write_back();
        detail::store_release(addr, value);
    }
}

/* What the handle says. */
SLUICE_FN u64 rank(const Handle *h) { return h->rank; }
SLUICE_FN u64 round(const Handle *h) { return h->round; }
SLUICE_FN u64 world(const Handle *h) { return h->world; }
SLUICE_FN u64 chunks(const Handle *h) { return h->chunks; }
SLUICE_FN u64 first(const Handle *h) { return h->first; }
SLUICE_FN u64 own(const Handle *h) { return h->own; }
SLUICE_FN u64 writers(const Handle *h, u64 chunk) { return ((const ChunkWords *)(h + 1))[chunk].writers; }
SLUICE_FN u64 owner(const Handle *h, u64 chunk) { return ((const ChunkWords *)(h + 1))[chunk].owner; }

/* ---- Persistent tiled producers. Plain integers, for host and device. ---- */

/* tiles is how many tiles of a size cover so many elements. */
SLUICE_BOTH u64 tiles(u64 elements, u64 size) { return (elements + size - 1) / size; }

/* tile_of maps a step to a tile, row-major (tile = row * tiles_n + column):
 * groups of `group` tile rows are walked column by column. group 1 is row by
 * row. */
SLUICE_BOTH u64 tile_of(u64 step, u64 tiles_m, u64 tiles_n, u64 group) {
    u64 in_group = group * tiles_n;
    u64 top = step / in_group * group;
    u64 rows = tiles_m - top < group ? tiles_m - top : group;
    u64 rest = step % in_group;
    return (top + rest % rows) * tiles_n + rest / rows;
}

/* SLUICE_EVALUATOR(name, mapping) defines a kernel that stores mapping(step,
 * a, b, c) for every step below steps into the words at out, so that a host
 * can build its schedule from the mapping that the module itself uses. */
#define SLUICE_EVALUATOR(name, mapping)                                                             \
    SLUICE_KERNEL void name(sluice::u64 out, sluice::u64 steps, sluice::u64 a, sluice::u64 b,      \
                            sluice::u64 c) {                                                        \
        sluice::u64 step = (sluice::u64)sluice::block() * sluice::threads() + sluice::thread();    \
        for (; step < steps; step += (sluice::u64)sluice::blocks() * sluice::threads())            \
            ((sluice::detail::Word)out)[step] = mapping(step, a, b, c);                            \
    }

} /* namespace sluice */

#endif /* __cplusplus */
#endif /* SLUICE_H */
