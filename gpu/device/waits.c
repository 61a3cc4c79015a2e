/* waits.c: which of the driver's calls wait for a stream that waits at a gate.
 * Each call is made in a process of its own, since one that waits holds the
 * driver's lock: the gate, in pinned memory, is then opened by the host.
 * gcc -O2 -I/usr/local/cuda/include waits.c -o waits -lcuda -lpthread
 * waits KERNELS.ptx */
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static CUcontext context;
static CUstream waiting, other;
static CUdeviceptr held;
static void *pinned, *plain;
static char *image;
static CUmodule module;
static const size_t bytes = 64 << 20;

static int alloc(void) { return cuMemAlloc(&held, bytes); }
static int release(void) { return cuMemFree(held); }
static int host_alloc(void) { return cuMemHostAlloc(&pinned, bytes, 3); }
static int host_release(void) { return cuMemFreeHost(pinned); }
static int host_register(void) { return cuMemHostRegister(plain, bytes, 3); }
static int stream_create(void) { return cuStreamCreate(&other, 1); }
static int stream_destroy(void) { return cuStreamDestroy(other); }
static int memset_async(void) { return cuMemsetD8Async(held, 0, bytes, other); }
static int memset_sync(void) { return cuMemsetD8(held, 0, bytes); }
static int copy_async(void) { return cuMemcpyAsync((CUdeviceptr)pinned, held, bytes, other); }
static int copy_sync(void) { return cuMemcpyDtoH(plain, held, 4096); }
static int module_load(void) {
    CUmodule m;
    return cuModuleLoadData(&m, image);
}
static int module_unload(void) { return cuModuleUnload(module); }
static int function(void) {
    CUfunction f;
    int e = cuModuleGetFunction(&f, module, "evaluate");
    return e ? e : cuFuncLoad(f);
}

static const struct {
    const char *name;
    int (*call)(void);
} calls[] = {
    {"cuMemAlloc 64 MiB", alloc},           {"cuMemFree", release},
    {"cuMemHostAlloc 64 MiB", host_alloc},  {"cuMemFreeHost", host_release},
    {"cuMemHostRegister", host_register},   {"cuStreamCreate", stream_create},
    {"cuStreamDestroy", stream_destroy},    {"cuMemsetD8Async", memset_async},
    {"cuMemsetD8", memset_sync},            {"cuMemcpyAsync", copy_async},
    {"cuMemcpyDtoH", copy_sync},            {"cuModuleLoadData", module_load},
    {"cuModuleUnload", module_unload},      {"cuModuleGetFunction, cuFuncLoad", function},
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static volatile int done;
static int result;

static void *run(void *which) {
    cuCtxSetCurrent(context);
    result = calls[*(int *)which].call();
    done = 1;
    return NULL;
}

static int need(int e, const char *what) {
    if (e) {
        printf("%s failed: %d\n", what, e);
        fflush(stdout);
        _exit(1);
    }
    return 0;
}

static void child(int which) {
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    CUdevice d;
    need(cuInit(0) || cuDeviceGet(&d, 0) || cuDevicePrimaryCtxRetain(&context, d) || cuCtxSetCurrent(context), "starting");
    volatile unsigned *gate;
    need(cuMemHostAlloc((void **)&gate, 4096, 3), "the gate");
    *gate = 0;
    need(cuMemAlloc(&held, bytes) || cuMemHostAlloc(&pinned, bytes, 3), "memory");
    plain = aligned_alloc(4096, bytes);
    memset(plain, 1, bytes);
    need(cuModuleLoadData(&module, image), "the module");
    need(cuStreamCreate(&waiting, 1) || cuStreamCreate(&other, 1), "streams");
    need(cuStreamWaitValue32(waiting, (CUdeviceptr)gate, 1, 0), "the wait");
    need(cuMemcpyAsync((CUdeviceptr)pinned, held, 4096, waiting), "the copy");
    pthread_t t;
    double start = now();
    pthread_create(&t, NULL, run, &which);
    while (!done && now() - start < 0.7) usleep(100);
    int waited = !done;
    double took = now() - start;
    *gate = 1;
    while (!done && now() - start < 5) usleep(1000);
    printf("%-34s %s %8.3f ms, result %d%s\n", calls[which].name, waited ? "WAITS   " : "returns ", took * 1e3, result,
           done ? "" : ", and does not return when the gate opens");
    fflush(stdout);
    _exit(0);
}

int main(int argc, char **argv) {
    FILE *f = argc > 1 ? fopen(argv[1], "rb") : NULL;
    if (!f) return 2;
    image = calloc(1, 16 << 20);
    if (!fread(image, 1, (16 << 20) - 1, f)) return 2;
    for (int i = 0; i < (int)(sizeof calls / sizeof *calls); i++) {
        pid_t p = fork();
        if (!p) child(i);
        waitpid(p, NULL, 0);
    }
    return 0;
}
