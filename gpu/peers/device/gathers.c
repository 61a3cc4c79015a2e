/* gathers.c: all-gathers between the GPUs of a machine as others make them: a
 * loop of cuMemcpyPeerAsync, NCCL's ncclAllGather, and the same with NCCL's
 * zero-CTA policy on symmetric windows. Alone (rate), beside a kernel that
 * fills the GPUs (beside), and of a product that is gathered while it is
 * computed (overlap). One thread for each GPU; every byte is checked.
 * gcc -O2 -pthread -I$CUDA/include -I$NCCL/include gathers.c -o gathers \
 *     -lcuda $NCCL/lib/libnccl.so.2 -Wl,-rpath,$NCCL/lib
 * gathers KERNELS.ptx WAYS rate|beside|overlap ...
 * WAYS is a list of loop, nccl, zero. */
#include <nccl.h>
#include <string.h>

#include "together.h"

enum { LOOP, NCCL, ZERO, WAYS, REPEATS = 11, WARM = 3, PIECE = 64 << 20 };
static const char *names[] = {"loop of cuMemcpyPeerAsync", "NCCL", "NCCL, zero-CTA policy"};
static const size_t largest = (size_t)1 << 30; /* bytes from each rank */

typedef struct {
    int id;
    CUcontext context;
    CUstream compute, other, to[MOST];
    CUevent produced;
    CUfunction matmul;
    CUdeviceptr plain, window, a, b;
    ncclComm_t comm[WAYS];
    unsigned *back; /* pinned */
    unsigned turn;  /* of checks */
    double took;
} rank;

static int with[WAYS];
static rank all[MOST];
static char *image, **what;
static int whats;
static ncclUniqueId ids[WAYS];

#define NC(call)                                                                \
    do {                                                                        \
        ncclResult_t e_ = (call);                                               \
        if (e_ != ncclSuccess) fail(#call, __LINE__, e_, ncclGetErrorString(e_)); \
    } while (0)

static CUdeviceptr buffer(const rank *r, int way) { return way == ZERO ? r->window : r->plain; }

/* gather sends bytes from each rank to all others, in place, at an offset. */
static void gather(rank *r, int way, size_t at, size_t bytes, CUstream s) {
    CUdeviceptr buf = buffer(r, way) + at, mine = buf + r->id * bytes;
    if (way != LOOP) {
        NC(ncclAllGather((void *)mine, (void *)buf, bytes, ncclInt8, r->comm[way], s));
        return;
    }
    for (int i = 1, p; i < ranks; i++) {
        p = (r->id + i) % ranks; /* no two begin with the same */
        CU(cuMemcpyPeerAsync(all[p].plain + at + r->id * bytes, all[p].context, mine, r->context, bytes, r->to[p]));
    }
}

static void gathered(rank *r, int way, CUstream s) {
    if (way != LOOP) idle(s);
    for (int p = 0; p < ranks && way == LOOP; p++)
        if (p != r->id) idle(r->to[p]);
}

/* timed is the middle of the repeats of do, each as long as its slowest rank. */
static double timed(rank *r, void (*todo)(rank *, const size_t *), const size_t *args) {
    static double each[REPEATS];
    for (int i = -WARM; i < REPEATS; i++) {
        meet();
        double began = now();
        todo(r, args);
        r->took = now() - began;
        meet();
        if (r->id || i < 0) continue;
        each[i] = 0;
        for (int p = 0; p < ranks; p++)
            if (all[p].took > each[i]) each[i] = all[p].took;
    }
    meet();
    if (!r->id) qsort(each, REPEATS, sizeof *each, ascending);
    meet();
    return each[REPEATS / 2];
}

/* check gathers new data once and compares every word. */
static void check(rank *r, int way, size_t bytes) {
    CUdeviceptr buf = buffer(r, way);
    unsigned base = ++r->turn * MOST;
    CU(cuMemsetD32(buf, 0, ranks * bytes / 4));
    CU(cuMemsetD32(buf + r->id * bytes, base + r->id, bytes / 4));
    CU(cuCtxSynchronize());
    meet();
    gather(r, way, 0, bytes, r->other);
    gathered(r, way, r->other);
    meet();
    for (int p = 0; p < ranks; p++)
        for (size_t at = 0; at < bytes; at += PIECE) {
            size_t n = bytes - at < PIECE ? bytes - at : PIECE;
            CU(cuMemcpyDtoH(r->back, buf + p * bytes + at, n));
            for (size_t i = 0; i < n / 4; i++)
                if (r->back[i] != base + p) fail("the check of the data", __LINE__, way, names[way]);
        }
    meet();
}

static void do_rate(rank *r, const size_t *args) {
    for (size_t i = 0; i < args[2]; i++) gather(r, args[0], 0, args[1], r->other);
    gathered(r, args[0], r->other);
}

static void rate(rank *r) {
    static const struct {
        size_t bytes, times;
    } sizes[] = {{1 << 20, 1},    {4 << 20, 1},    {16 << 20, 1},  {64 << 20, 1},  {256 << 20, 1},  {1 << 30, 1},
                 {1 << 20, 128}, {4 << 20, 128}, {16 << 20, 64}, {64 << 20, 24}, {256 << 20, 8}, {1 << 30, 3}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int way = 0; way < WAYS; way++) {
            if (!with[way]) continue;
            check(r, way, sizes[i].bytes);
            double us = timed(r, do_rate, (size_t[]){way, sizes[i].bytes, sizes[i].times});
            if (!r->id)
                printf("all-gather, %d ranks, %zu x %zu KiB from each, %s: %.1f GB/s a rank, %.1f us\n", ranks, sizes[i].times,
                       sizes[i].bytes >> 10, names[way], (ranks - 1) * sizes[i].times * sizes[i].bytes / us / 1e3, us);
            fflush(stdout);
        }
}

/* A product of m rows of a, n = k = dim, to an offset of the buffer. */
static void product(rank *r, int way, size_t at, size_t first, size_t m, size_t dim) {
    unsigned long long handle = 0, buf = buffer(r, way), offset = at, pitch = dim * 2, a = r->a + first * dim * 2, b = r->b,
                       rows = m, n = dim, k = dim, steps = 1, group = 8;
    void *args[] = {&handle, &buf, &offset, &pitch, &a, &b, &rows, &n, &k, &steps, &group};
    CU(cuLaunchKernel(r->matmul, 264, 1, 1, 128, 1, 1, 0, r->compute, args, NULL));
}

static void do_product(rank *r, const size_t *args) {
    product(r, args[0], 0, 0, args[1] / ranks, args[1]);
    idle(r->compute);
}

static void do_gather(rank *r, const size_t *args) {
    gather(r, args[0], 0, args[1] / ranks * args[1] * 2, r->other);
    gathered(r, args[0], r->other);
}

/* One after the other on one stream; copies by hand have streams of their own. */
static void do_sequence(rank *r, const size_t *args) {
    size_t bytes = args[1] / ranks * args[1] * 2;
    product(r, args[0], r->id * bytes, 0, args[1] / ranks, args[1]);
    if (args[0] == LOOP) idle(r->compute);
    gather(r, args[0], 0, bytes, r->compute);
    gathered(r, args[0], r->compute);
}

/* In pieces, each gathered on another stream while the next is computed. */
static void do_pieces(rank *r, const size_t *args) {
    size_t dim = args[1], pieces = args[2], rows = dim / ranks / pieces, bytes = rows * dim * 2;
    for (size_t i = 0; i < pieces; i++) {
        product(r, args[0], (i * ranks + r->id) * bytes, i * rows, rows, dim);
        CU(cuEventRecord(r->produced, r->compute));
        if (args[0] == LOOP)
            for (int p = 0; p < ranks; p++) CU(p == r->id ? 0 : cuStreamWaitEvent(r->to[p], r->produced, 0));
        else
            CU(cuStreamWaitEvent(r->other, r->produced, 0));
        gather(r, args[0], i * ranks * bytes, bytes, r->other);
    }
    idle(r->compute);
    gathered(r, args[0], r->other);
}

/* same compares the first rank's product with the others'. */
static void same(rank *r, int way, size_t bytes) {
    meet();
    for (size_t at = 0; at < bytes; at += PIECE) {
        size_t n = bytes - at < PIECE ? bytes - at : PIECE;
        CU(cuMemcpyDtoH(r->back, buffer(r, way) + at, n));
        meet();
        if (memcmp(r->back, all[0].back, n) || r->back[n / 8] == 0) fail("the product's check", __LINE__, way, names[way]);
        meet();
    }
}

static void overlap(rank *r) {
    for (size_t dim = 4096; dim <= 16384; dim *= 2)
        for (int way = 0; way < WAYS; way++) {
            if (!with[way]) continue;
            double compute = timed(r, do_product, (size_t[]){way, dim}), alone = timed(r, do_gather, (size_t[]){way, dim});
            double sequence = timed(r, do_sequence, (size_t[]){way, dim});
            double ideal = compute < alone ? compute : alone;
            same(r, way, dim * dim * 2);
            if (!r->id)
                printf("M = N = K = %zu on %d ranks, %s: product %.1f us, gather %.1f us, in sequence %.1f us\n", dim, ranks,
                       names[way], compute, alone, sequence);
            for (size_t pieces = 2; pieces <= 16; pieces *= 2) {
                CU(cuMemsetD8(buffer(r, way), 0, dim * dim * 2));
                double us = timed(r, do_pieces, (size_t[]){way, dim, pieces});
                same(r, way, dim * dim * 2);
                if (!r->id)
                    printf("  on another stream in %zu pieces %.1f us: %.3f of the ideal saving\n", pieces, us,
                           (sequence - us) / ideal);
                fflush(stdout);
            }
        }
}

/* How long a gather takes that begins while a kernel fills the GPUs. */
static void do_beside(rank *r, const size_t *args) {
    product(r, args[0], args[1] * ranks, 0, 8192, 16384);
    gather(r, args[0], 0, args[1], r->other);
    gathered(r, args[0], r->other);
}

static void beside(rank *r) {
    for (int way = 0; way < WAYS; way++) {
        if (!with[way]) continue;
        double us = timed(r, do_beside, (size_t[]){way, 64 << 20});
        idle(r->compute);
        double busy = timed(r, do_product, (size_t[]){way, 16384});
        if (!r->id)
            printf("gather of 64 MiB from each beside a kernel of %.0f us that fills the GPUs, %s: %.1f us\n", busy, names[way], us);
        fflush(stdout);
    }
}

static void inputs(rank *r) {
    unsigned x = 12345 + r->id;
    for (size_t i = 0; i < PIECE / 2; i++) { /* bf16 of both signs, less than 1 */
        x = x * 1664525u + 1013904223u;
        float f = (int)x / 2147483648.0f;
        unsigned bits;
        memcpy(&bits, &f, 4);
        ((unsigned short *)r->back)[i] = bits >> 16;
    }
    for (size_t at = 0; at < (size_t)16384 * 16384 * 2; at += PIECE) {
        CU(cuMemcpyHtoD(r->a + at, r->back, PIECE));
        CU(cuMemcpyHtoD(r->b + at, r->back, PIECE));
    }
}

static void begin(rank *r) {
    CU(cuCtxSetCurrent(r->context));
    for (int p = 0; p < ranks; p++) {
        CU(p == r->id ? 0 : cuCtxEnablePeerAccess(all[p].context, 0));
        CU(cuStreamCreate(&r->to[p], CU_STREAM_NON_BLOCKING));
    }
    CU(cuStreamCreate(&r->compute, CU_STREAM_NON_BLOCKING));
    CU(cuStreamCreate(&r->other, CU_STREAM_NON_BLOCKING));
    CU(cuEventCreate(&r->produced, CU_EVENT_DISABLE_TIMING));
    CU(cuMemHostAlloc((void **)&r->back, PIECE, CU_MEMHOSTALLOC_PORTABLE));
    CU(cuMemAlloc(&r->plain, ranks * largest));
    CU(cuMemAlloc(&r->a, (size_t)16384 * 16384 * 2));
    CU(cuMemAlloc(&r->b, (size_t)16384 * 16384 * 2));
    CUmodule m;
    CU(cuModuleLoadData(&m, image));
    CU(cuModuleGetFunction(&r->matmul, m, "matmul"));
    inputs(r);
    meet();
    for (int way = NCCL; way < WAYS; way++) {
        if (!with[way]) continue;
        ncclConfig_t c = NCCL_CONFIG_INITIALIZER;
        if (way == ZERO) c.CTAPolicy = NCCL_CTA_POLICY_ZERO;
        NC(ncclCommInitRankConfig(&r->comm[way], ranks, ids[way], r->id, &c));
        if (way != ZERO) continue;
        ncclWindow_t w;
        NC(ncclMemAlloc((void **)&r->window, ranks * largest));
        NC(ncclCommWindowRegister(r->comm[way], (void *)r->window, ranks * largest, &w, NCCL_WIN_COLL_SYMMETRIC));
    }
    meet();
}

static void *run(void *arg) {
    rank *r = arg;
    begin(r);
    for (int i = 0; i < whats; i++) {
        if (!strcmp(what[i], "rate")) rate(r);
        if (!strcmp(what[i], "beside")) beside(r);
        if (!strcmp(what[i], "overlap")) overlap(r);
    }
    return NULL;
}

int main(int argc, char **argv) {
    FILE *f = argc > 3 ? fopen(argv[1], "rb") : NULL;
    if (!f) return 2;
    image = calloc(1, 16 << 20);
    if (!fread(image, 1, (16 << 20) - 1, f)) return 2;
    with[LOOP] = strstr(argv[2], "loop") != NULL;
    with[NCCL] = strstr(argv[2], "nccl") != NULL;
    with[ZERO] = strstr(argv[2], "zero") != NULL;
    what = argv + 3, whats = argc - 3;
    start();
    int version;
    NC(ncclGetVersion(&version));
    printf("NCCL %d, %d GPUs\n", version, ranks);
    for (int w = NCCL; w < WAYS; w++) NC(ncclGetUniqueId(&ids[w]));
    for (int i = 0; i < ranks; i++) all[i].id = i, all[i].context = context_of(i);
    each_runs(run, all, sizeof *all);
    return 0;
}
