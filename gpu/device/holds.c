/* holds.c: how much a stream takes behind a closed gate before the next
 * submission blocks its caller. Each form runs in a process of its own; the
 * gate, in pinned memory, is opened by the host.
 * gcc -O2 -I/usr/local/cuda/include holds.c -o holds -lcuda -lpthread */
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static CUcontext context;
static CUstream stream;
static CUdeviceptr from;
static char *to;
static const size_t bytes = 256 << 20;

static int single(size_t n) {
    (void)n;
    return cuMemcpyAsync((CUdeviceptr)to, from, 4096, stream);
}

static int word(size_t n) {
    (void)n;
    return cuStreamWriteValue32(stream, (CUdeviceptr)to, 1, 0);
}

static int batch(size_t n) {
    static CUdeviceptr src[4096], dst[4096];
    static size_t size[4096];
    for (size_t i = 0; i < n; i++) src[i] = from + 8192 * i, dst[i] = (CUdeviceptr)to + 8192 * i, size[i] = 4096;
    CUmemcpyAttributes a = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    size_t first = 0;
    return cuMemcpyBatchAsync(dst, src, size, n, &a, &first, 1, stream);
}

static int window(size_t n) {
    CUDA_MEMCPY3D w = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED, .srcDevice = from, .srcPitch = 2048, .srcHeight = 16,
                       .dstMemoryType = CU_MEMORYTYPE_UNIFIED, .dstDevice = (CUdeviceptr)to, .dstPitch = 2048, .dstHeight = 16,
                       .WidthInBytes = 256, .Height = 16, .Depth = n};
    return cuMemcpy3DAsync(&w, stream);
}

static int rows(size_t n) {
    CUDA_MEMCPY3D w = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED, .srcDevice = from, .srcPitch = 8192, .srcHeight = n,
                       .dstMemoryType = CU_MEMORYTYPE_UNIFIED, .dstDevice = (CUdeviceptr)to, .dstPitch = 8192, .dstHeight = n,
                       .WidthInBytes = 4096, .Height = n, .Depth = 1};
    return cuMemcpy3DAsync(&w, stream);
}

static const struct {
    const char *name;
    int (*call)(size_t);
    size_t n;
} forms[] = {
    {"copies, one call each", single, 1},      {"writes of a word", word, 1},
    {"batches of 16 copies", batch, 16},       {"batches of 64 copies", batch, 64},
    {"batches of 512 copies", batch, 512},     {"windows of 1 slice", window, 1},
    {"windows of 64 slices", window, 64},      {"windows of 256 slices", window, 256},
    {"windows of 512 rows of 4 KiB", rows, 512}, {"windows of 8192 rows of 4 KiB", rows, 8192},
};

static volatile int taken, failed, stop;

static void *submit(void *which) {
    int i = *(int *)which;
    cuCtxSetCurrent(context);
    while (!stop && taken < 20000) {
        int e = forms[i].call(forms[i].n);
        if (e) {
            failed = e;
            break;
        }
        taken++;
    }
    stop = 1;
    return NULL;
}

static void child(int which) {
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    CUdevice d;
    volatile unsigned *gate;
    if (cuInit(0) || cuDeviceGet(&d, 0) || cuDevicePrimaryCtxRetain(&context, d) || cuCtxSetCurrent(context) ||
        cuMemHostAlloc((void **)&gate, 4096, 3) || cuMemAlloc(&from, bytes) || cuMemHostAlloc((void **)&to, bytes, 3) ||
        cuStreamCreate(&stream, 1))
        _exit(1);
    *gate = 0;
    if (cuStreamWaitValue32(stream, (CUdeviceptr)gate, 1, 0)) _exit(1);
    pthread_t t;
    pthread_create(&t, NULL, submit, &which);
    int before = -1;
    while (!stop && before != taken) {
        before = taken;
        usleep(150000);
    }
    int fits = taken;
    stop = 1;
    *gate = 1;
    printf("%-32s %6d fit behind the gate's wait (%d copies or slices)%s\n", forms[which].name, fits, (int)(fits * forms[which].n), failed ? ", then an error" : "");
    fflush(stdout);
    _exit(0);
}

int main(void) {
    for (int i = 0; i < (int)(sizeof forms / sizeof *forms); i++) {
        pid_t p = fork();
        if (!p) child(i);
        waitpid(p, NULL, 0);
    }
    return 0;
}
