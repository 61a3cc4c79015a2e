/* copies.c: what rate copies from every GPU to every other reach, by how they
 * are given to the driver. One thread for each GPU; they begin together.
 * gcc -O2 -pthread -I$CUDA/include copies.c -o copies -lcuda
 * copies [KIB COPIES ...] */
#include "together.h"

enum { PARTS = 4, REPEATS = 5 };

/* How copies are made. */
typedef struct {
    const char *name;
    int single;   /* one stream for each GPU instead of one for each pair */
    int unsorted; /* peers in the order 0, 1, 2 … instead of r + 1, r + 2, … */
    int batch;    /* cuMemcpyBatchAsync: 1 for each copy, 2 for the copies to all peers */
    int flags;    /* of the batch */
    int order;    /* of the batch: 1 stream, 2 during the call, 3 any */
    int split;    /* pieces of a copy; in the batch, or each on a stream of its own */
    int pull;     /* on the receiver's stream */
    int ranked;   /* streams of different priority */
    int gated;    /* behind a wait and before a write, as in chains */
    int ring;     /* 1 to the next GPU only, 2 from GPU 0 only */
    int turns;    /* streams of pairs take turns, copy by copy, through events */
} way;

static const way ways[] = {
    {.name = "GPU 0 to 1 alone", .ring = 2},
    {.name = "each to the next", .ring = 1},
    {.name = "a stream a GPU, shifted", .single = 1},
    {.name = "a stream a GPU, unshifted", .single = 1, .unsorted = 1},
    {.name = "a stream a pair, shifted"},
    {.name = "a stream a pair, unshifted", .unsorted = 1},
    {.name = "a stream a pair, shifted, gated", .gated = 1},
    {.name = "a stream a GPU, shifted, gated", .single = 1, .gated = 1},
    {.name = "a stream a pair, shifted, pulled", .pull = 1},
    {.name = "a stream a GPU, shifted, pulled", .single = 1, .pull = 1},
    {.name = "a stream a pair, priorities", .ranked = 1},
    {.name = "a stream a pair, taking turns", .turns = 1},
    {.name = "one batch for all peers, flag 0", .single = 1, .batch = 2, .order = 1},
    {.name = "one batch for all peers, flag 1", .single = 1, .batch = 2, .order = 1, .flags = 1},
    {.name = "one batch for all peers, flag 1, order during the call", .single = 1, .batch = 2, .order = 2, .flags = 1},
    {.name = "one batch for all peers, flag 1, any order", .single = 1, .batch = 2, .order = 3, .flags = 1},
    {.name = "one batch for all peers, flag 1, in 4 pieces", .single = 1, .batch = 2, .order = 1, .flags = 1, .split = 4},
    {.name = "a batch a pair, flag 0", .batch = 1, .order = 1},
    {.name = "a batch a pair, flag 1", .batch = 1, .order = 1, .flags = 1},
    {.name = "a batch a pair, flag 1, gated", .batch = 1, .order = 1, .flags = 1, .gated = 1},
    {.name = "a batch a pair, flag 1, in 2 pieces", .batch = 1, .order = 1, .flags = 1, .split = 2},
    {.name = "a batch a pair, flag 1, in 4 pieces", .batch = 1, .order = 1, .flags = 1, .split = 4},
    {.name = "a batch a pair, flag 0, in 4 pieces", .batch = 1, .order = 1, .split = 4},
    {.name = "a batch a pair, flag 1, in 16 pieces", .batch = 1, .order = 1, .flags = 1, .split = 16},
    {.name = "a batch a pair, flag 1, in 4 pieces, pulled", .batch = 1, .order = 1, .flags = 1, .split = 4, .pull = 1},
    {.name = "a stream a pair, in 4 pieces", .split = 4},
    {.name = "a stream a pair, in 16 pieces", .split = 16},
    {.name = "2 streams a pair, in 2 pieces", .split = -2},
    {.name = "4 streams a pair, in 4 pieces", .split = -4},
    {.name = "2 streams a GPU, in 2 pieces", .single = 1, .split = -2},
    {.name = "4 streams a GPU, in 4 pieces", .single = 1, .split = -4},
};

typedef struct {
    int id;
    CUcontext context;
    CUstream to[MOST][PARTS], ranked[MOST];
    CUevent done[MOST];
    CUdeviceptr data, words;
    double took;
} gpu;

static int sizes;
static gpu all[MOST];
static char **args;

static CUstream stream(gpu *g, const way *w, int peer, int part) {
    if (w->ranked) return g->ranked[peer];
    return g->to[w->single ? g->id : peer][w->split < 0 ? part : 0];
}

/* Peers as they come. */
static int peer_at(const gpu *g, const way *w, int i) { return w->unsorted ? i : (g->id + i) % ranks; }

static size_t pieces(const gpu *g, const way *w, int peer, size_t bytes, CUdeviceptr *dst, CUdeviceptr *src, size_t *size) {
    size_t n = abs(w->split) > 1 ? abs(w->split) : 1;
    int from = w->pull ? peer : g->id, to = w->pull ? g->id : peer;
    for (size_t i = 0; i < n; i++) {
        size_t at = from * bytes + i * (bytes / n);
        dst[i] = all[to].data + at, src[i] = all[from].data + at, size[i] = bytes / n;
    }
    return n;
}

static void batch(const way *w, CUdeviceptr *dst, CUdeviceptr *src, size_t *size, size_t n, CUstream s) {
    CUmemcpyAttributes a = {.srcAccessOrder = w->order, .flags = w->flags};
    size_t first = 0;
    CU(cuMemcpyBatchAsync(dst, src, size, n, &a, &first, 1, s));
}

/* copy is one copy to each peer. */
static void copy(gpu *g, const way *w, size_t bytes) {
    CUdeviceptr dst[MOST * 16], src[MOST * 16];
    size_t size[MOST * 16], n = 0;
    int before = -1;
    for (int i = 0; i < ranks; i++) {
        int p = peer_at(g, w, i);
        if (p == g->id || (w->ring && p != (g->id + 1) % ranks) || (w->ring == 2 && g->id)) continue;
        CUstream s = stream(g, w, p, 0);
        if (w->gated) CU(cuStreamWaitValue32(s, g->words, 1, 0));
        if (w->turns && before >= 0) CU(cuStreamWaitEvent(s, g->done[before], 0));
        size_t m = pieces(g, w, p, bytes, dst + n, src + n, size + n);
        if (w->batch == 2)
            n += m;
        else if (w->batch)
            batch(w, dst, src, size, m, s);
        else
            for (size_t k = 0; k < m; k++) CU(cuMemcpyAsync(dst[k], src[k], size[k], stream(g, w, p, k)));
        if (w->turns) {
            CU(cuEventRecord(g->done[p], s));
            before = p;
        }
        if (w->gated) CU(cuStreamWriteValue32(s, all[p].words + 64 * (1 + g->id), 1, 0));
    }
    if (w->turns) /* the next copy to the first peer is behind this one to the last */
        CU(cuStreamWaitEvent(stream(g, w, peer_at(g, w, 1), 0), g->done[before], 0));
    if (w->batch == 2) batch(w, dst, src, size, n, stream(g, w, 0, 0));
}

static void all_idle(gpu *g) {
    for (int p = 0; p < ranks; p++)
        for (int k = 0; k <= PARTS; k++) idle(k < PARTS ? g->to[p][k] : g->ranked[p]);
}

static void measure(gpu *g, const way *w, size_t bytes, int times) {
    static double each[REPEATS];
    for (int i = -1; i < REPEATS; i++) {
        meet();
        double began = now();
        for (int k = 0; k < times; k++) copy(g, w, bytes);
        all_idle(g);
        g->took = now() - began;
        meet();
        if (g->id || i < 0) continue;
        each[i] = 0;
        for (int p = 0; p < ranks; p++)
            if (all[p].took > each[i]) each[i] = all[p].took;
    }
    if (g->id) return;
    qsort(each, REPEATS, sizeof *each, ascending);
    int peers = w->ring ? 1 : ranks - 1;
    printf("%d GPUs, %d x %zu KiB, %-54s %6.1f GB/s a GPU\n", ranks, times, bytes >> 10, w->name, peers * times * bytes / each[REPEATS / 2] / 1e3);
    fflush(stdout);
}

static void *run(void *arg) {
    gpu *g = arg;
    int low, high;
    CU(cuCtxSetCurrent(g->context));
    CU(cuCtxGetStreamPriorityRange(&low, &high));
    CU(cuMemAlloc(&g->data, (size_t)ranks << 28));
    CU(cuMemAlloc(&g->words, 4096));
    CU(cuMemsetD32(g->words, 1, 1024));
    for (int p = 0; p < ranks; p++) {
        CU(p == g->id ? 0 : cuCtxEnablePeerAccess(all[p].context, 0));
        for (int k = 0; k < PARTS; k++) CU(cuStreamCreate(&g->to[p][k], CU_STREAM_NON_BLOCKING));
        int priority = low - (p + ranks - g->id) % ranks;
        CU(cuStreamCreateWithPriority(&g->ranked[p], CU_STREAM_NON_BLOCKING, priority < high ? high : priority));
        CU(cuEventCreate(&g->done[p], CU_EVENT_DISABLE_TIMING));
    }
    CU(cuCtxSynchronize());
    for (int s = 0; s < sizes; s++)
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
            measure(g, &ways[i], strtoull(args[2 * s], NULL, 10) << 10, atoi(args[2 * s + 1]));
    return NULL;
}

int main(int argc, char **argv) {
    static char *usual[] = {"65536", "24", "262144", "8"};
    args = argc > 2 ? argv + 1 : usual;
    sizes = argc > 2 ? (argc - 1) / 2 : 2;
    start();
    for (int i = 0; i < ranks; i++) all[i].id = i, all[i].context = context_of(i);
    each_runs(run, all, sizeof *all);
    return 0;
}
