#include "hand.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

typedef struct {
    size_t src_x, src_y;
    unsigned src_type;
    const void *src_host;
    uint64_t src_device;
    void *src_array;
    size_t src_pitch, dst_x, dst_y;
    unsigned dst_type;
    void *dst_host;
    uint64_t dst_device;
    void *dst_array;
    size_t dst_pitch, width, height;
} rectangle; /* CUDA_MEMCPY2D */

static int (*retain)(void **, int), (*set_current)(void *), (*create)(void **, unsigned), (*query)(void *);
static int (*wait_value)(void *, uint64_t, uint32_t, unsigned), (*write_value)(void *, uint64_t, uint32_t, unsigned);
static int (*copy)(uint64_t, uint64_t, size_t, void *), (*copy_rectangle)(const rectangle *, void *);
static void *context;

int hand_start(const char *library) {
    void *lib = dlopen(library, RTLD_NOW);
    if (!lib) return -1;
    int (*init)(unsigned);
    *(void **)&init = dlsym(lib, "cuInit");
    *(void **)&retain = dlsym(lib, "cuDevicePrimaryCtxRetain");
    if (!init || !retain) return -2;
    int e = init(0);
    return e ? e : retain(&context, 0);
}

int hand_open(const char *library, int device) {
    void *lib = dlopen(library, RTLD_NOW);
    if (!lib) return -1;
    *(void **)&retain = dlsym(lib, "cuDevicePrimaryCtxRetain");
    *(void **)&set_current = dlsym(lib, "cuCtxSetCurrent");
    *(void **)&create = dlsym(lib, "cuStreamCreate");
    *(void **)&query = dlsym(lib, "cuStreamQuery");
    *(void **)&wait_value = dlsym(lib, "cuStreamWaitValue32_v2");
    *(void **)&write_value = dlsym(lib, "cuStreamWriteValue32_v2");
    *(void **)&copy = dlsym(lib, "cuMemcpyAsync");
    *(void **)&copy_rectangle = dlsym(lib, "cuMemcpy2DAsync_v2");
    if (!retain || !set_current || !create || !query || !wait_value || !write_value || !copy || !copy_rectangle) return -2;
    return retain(&context, device);
}

struct hand_stream {
    void *context, *handle;
};

int hand_stream_new(hand_stream **stream) {
    hand_stream *s = calloc(1, sizeof *s);
    if (!s) return -3;
    s->context = context;
    *stream = s;
    int e = set_current(s->context);
    return e ? e : create(&s->handle, 1);
}

int hand_idle(const hand_stream *s) {
    int e = set_current(s->context);
    return e ? e : query(s->handle);
}

int hand_chain(const hand_stream *s, size_t n, const uint64_t *gates, const uint64_t *signals, const size_t *counts,
               const uint64_t *dst, const uint64_t *src, const size_t *width, const size_t *rows, const size_t *pitch,
               uint32_t round, int64_t *ns) {
    enum { unified = 4 };
    struct timespec from, to;
    void *stream = s->handle;
    int e = set_current(s->context);
    clock_gettime(CLOCK_MONOTONIC, &from);
    size_t c = 0;
    for (size_t i = 0; !e && i < n; i++) {
        if (gates[i]) e = wait_value(stream, gates[i], round, 0);
        for (size_t end = c + counts[i]; !e && c < end; c++) {
            if (rows[c] == 1) {
                e = copy(dst[c], src[c], width[c], stream);
            } else {
                rectangle r = {.src_type = unified, .src_device = src[c], .src_pitch = pitch[c],
                               .dst_type = unified, .dst_device = dst[c], .dst_pitch = pitch[c],
                               .width = width[c], .height = rows[c]};
                e = copy_rectangle(&r, stream);
            }
        }
        if (!e && signals[i]) e = write_value(stream, signals[i], round, 0);
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    *ns = (to.tv_sec - from.tv_sec) * 1000000000ll + to.tv_nsec - from.tv_nsec;
    return e;
}
