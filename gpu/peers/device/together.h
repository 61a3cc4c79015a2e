/* together.h: what programs with one thread for each GPU share. */
#include <cuda.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MOST = 8 };

static int ranks; /* GPUs, and threads */

static void fail(const char *call, int line, int code, const char *text) {
    printf("line %d: %s failed: %d %s\n", line, call, code, text);
    fflush(stdout);
    _Exit(1);
}

#define CU(call)                               \
    do {                                       \
        int e_ = (call);                       \
        if (e_) fail(#call, __LINE__, e_, ""); \
    } while (0)

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec * 1e-3; /* µs */
}

/* meet waits, without a pause, until all threads are here. */
static void meet(void) {
    static atomic_int here, turn;
    int at = turn;
    if (atomic_fetch_add(&here, 1) == ranks - 1) {
        here = 0;
        turn = at + 1;
    } else {
        while (turn == at) {}
    }
}

static void idle(CUstream s) {
    int e;
    while ((e = cuStreamQuery(s)) == CUDA_ERROR_NOT_READY) {}
    CU(e);
}

/* ascending orders doubles, for qsort. */
static int ascending(const void *a, const void *b) { return (*(double *)a > *(double *)b) - (*(double *)a < *(double *)b); }

/* start opens the driver, for at most MOST GPUs. */
static void start(void) {
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    CU(cuInit(0));
    CU(cuDeviceGetCount(&ranks));
    if (ranks > MOST) ranks = MOST;
}

static CUcontext context_of(int i) {
    CUdevice d;
    CUcontext c;
    CU(cuDeviceGet(&d, i));
    CU(cuDevicePrimaryCtxRetain(&c, d));
    return c;
}

/* each_runs runs a thread for each GPU's element of all, elements of a size. */
static void each_runs(void *(*run)(void *), void *all, size_t size) {
    pthread_t threads[MOST];
    for (int i = 0; i < ranks; i++) pthread_create(&threads[i], NULL, run, (char *)all + i * size);
    for (int i = 0; i < ranks; i++) pthread_join(threads[i], NULL);
}
