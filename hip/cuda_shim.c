#include "cuda_shim.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Hints where a batch's copies lie; all zero is none. */
typedef struct {
    int order;
    int src_type, src_id, dst_type, dst_id;
    unsigned flags;
} cuda_attributes;

/* X(field, symbol, parameters): what must be there. */
#define CUDA_CALLS(X)                                                                                       \
    X(init, "cuInit", (unsigned))                                                                          \
    X(driver_version, "cuDriverGetVersion", (int *))                                                       \
    X(error_name, "cuGetErrorName", (int, const char **))                                                  \
    X(error_text, "cuGetErrorString", (int, const char **))                                                \
    X(device_count, "cuDeviceGetCount", (int *))                                                           \
    X(device_get, "cuDeviceGet", (int *, int))                                                             \
    X(device_name, "cuDeviceGetName", (char *, int, int))                                                  \
    X(device_attribute, "cuDeviceGetAttribute", (int *, int, int))                                         \
    X(context_retain, "cuDevicePrimaryCtxRetain", (cuda_handle *, int))                                    \
    X(context_push, "cuCtxPushCurrent_v2", (cuda_handle))                                                  \
    X(context_pop, "cuCtxPopCurrent_v2", (cuda_handle *))                                                  \
    X(can_access_peer, "cuDeviceCanAccessPeer", (int *, int, int))                                         \
    X(enable_peer, "cuCtxEnablePeerAccess", (cuda_handle, unsigned))                                       \
    X(mem_alloc, "cuMemAlloc_v2", (cuda_ptr *, size_t))                                                    \
    X(mem_free, "cuMemFree_v2", (cuda_ptr))                                                                \
    X(host_alloc, "cuMemHostAlloc", (void **, size_t, unsigned))                                           \
    X(host_free, "cuMemFreeHost", (void *))                                                                \
    X(host_address, "cuMemHostGetDevicePointer_v2", (cuda_ptr *, void *, unsigned))                        \
    X(stream_create, "cuStreamCreate", (cuda_handle *, unsigned))                                          \
    X(stream_query, "cuStreamQuery", (cuda_handle))                                                        \
    X(copy, "cuMemcpyAsync", (cuda_ptr, cuda_ptr, size_t, cuda_handle))                                    \
    X(copy_window, "cuMemcpy3DAsync_v2", (const cuda_window *, cuda_handle))                               \
    X(wait, "cuStreamWaitValue32_v2", (cuda_handle, cuda_ptr, uint32_t, unsigned))                         \
    X(write, "cuStreamWriteValue32_v2", (cuda_handle, cuda_ptr, uint32_t, unsigned))                       \
    X(write_wide, "cuStreamWriteValue64_v2", (cuda_handle, cuda_ptr, uint64_t, unsigned))                  \
    X(module_load, "cuModuleLoadDataEx", (cuda_handle *, const void *, unsigned, int *, void **))          \
    X(module_unload, "cuModuleUnload", (cuda_handle))                                                      \
    X(module_function, "cuModuleGetFunction", (cuda_handle *, cuda_handle, const char *))                  \
    X(function_attribute, "cuFuncGetAttribute", (int *, int, cuda_handle))                                 \
    X(function_set_attribute, "cuFuncSetAttribute", (cuda_handle, int, int))                               \
    X(occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor", (int *, cuda_handle, int, size_t))         \
    X(launch, "cuLaunchKernel",                                                                            \
      (cuda_handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, cuda_handle, void **, void **))

/* What newer drivers have. The two batch calls are one call before and since
 * CUDA 13. */
#define CUDA_NEWER_CALLS(X)                                                                                \
    X(copy_batch, "cuMemcpyBatchAsync_v2",                                                                 \
      (cuda_ptr *, cuda_ptr *, size_t *, size_t, cuda_attributes *, size_t *, size_t, cuda_handle))        \
    X(copy_batch_12, "cuMemcpyBatchAsync",                                                                 \
      (cuda_ptr *, cuda_ptr *, size_t *, size_t, cuda_attributes *, size_t *, size_t, size_t *, cuda_handle)) \
    X(function_load, "cuFuncLoad", (cuda_handle))                                                          \
    X(function_parameter, "cuFuncGetParamInfo", (cuda_handle, size_t, size_t *, size_t *))

#define FIELD(field, symbol, parameters) int(*field) parameters;
#define NAME(field, symbol, parameters) \
    static const char name_##field[] __attribute__((unused)) = symbol;

struct cuda_api {
    CUDA_CALLS(FIELD)
    CUDA_NEWER_CALLS(FIELD)
};

CUDA_CALLS(NAME)
CUDA_NEWER_CALLS(NAME)

/* CALL makes one call on an api and leaves with its error. */
#define CALL(api, field, arguments)                                                                        \
    do {                                                                                                   \
        int code_ = (api)->field arguments;                                                                \
        if (code_) return (cuda_result){code_, name_##field};                                              \
    } while (0)

static const cuda_result ok = {0, 0};

cuda_api *cuda_open(const char *library, char *why, size_t n, int *devices, int *version) {
    /* Streams that share a channel wait for each other, and code that is loaded
     * by its first launch waits for the device. The driver reads these when it
     * starts. */
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    void *lib = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!lib) {
        snprintf(why, n, "%s", dlerror());
        return NULL;
    }
    cuda_api *api = calloc(1, sizeof *api);
    if (!api) {
        snprintf(why, n, "out of memory");
        return NULL;
    }
#define NEED(field, symbol, parameters)                                                                    \
    if (!(*(void **)&api->field = dlsym(lib, symbol))) {                                                   \
        snprintf(why, n, "it has no %s: the driver is too old", symbol);                                   \
        goto fail;                                                                                         \
    }
#define LIKE(field, symbol, parameters) *(void **)&api->field = dlsym(lib, symbol);
    CUDA_CALLS(NEED)
    CUDA_NEWER_CALLS(LIKE)
    int code;
    if ((code = api->init(0)) || (code = api->device_count(devices)) || (code = api->driver_version(version))) {
        snprintf(why, n, "the driver does not start: %s (%d)", cuda_error_name(api, code), code);
        goto fail;
    }
    return api;
fail:
    free(api);
    return NULL;
}

const char *cuda_error_name(const cuda_api *api, int code) {
    const char *s = NULL;
    return api->error_name(code, &s) || !s ? "an unknown error" : s;
}

const char *cuda_error_text(const cuda_api *api, int code) {
    const char *s = NULL;
    return api->error_text(code, &s) || !s ? "the driver does not know it" : s;
}

int cuda_has_batches(const cuda_api *api) { return api->copy_batch || api->copy_batch_12; }

cuda_result cuda_device_open(const cuda_api *api, int ordinal, cuda_device **out) {
    int device;
    cuda_handle context;
    CALL(api, device_get, (&device, ordinal));
    CALL(api, context_retain, (&context, device));
    cuda_device *d = calloc(1, sizeof *d);
    if (!d) return (cuda_result){2, "calloc"};
    d->api = api;
    d->ordinal = device;
    d->context = context;
    *out = d;
    return ok;
}

cuda_result cuda_device_name(const cuda_device *d, char *name, int n) {
    CALL(d->api, device_name, (name, n, d->ordinal));
    return ok;
}

cuda_result cuda_device_attribute(const cuda_device *d, int attribute, int *out) {
    CALL(d->api, device_attribute, (out, attribute, d->ordinal));
    return ok;
}

cuda_result cuda_peer_access(const cuda_device *d, const cuda_device *to, int *can) {
    CALL(d->api, can_access_peer, (can, d->ordinal, to->ordinal));
    return ok;
}

/* IN runs the rest of a function with the device's context: f is what it
 * returns. */
#define IN(d, f)                                                                                           \
    do {                                                                                                   \
        CALL((d)->api, context_push, ((d)->context));                                                      \
        cuda_result result_ = f;                                                                           \
        cuda_handle was_;                                                                                  \
        int code_ = (d)->api->context_pop(&was_);                                                          \
        return result_.code || !code_ ? result_ : (cuda_result){code_, name_context_pop};                  \
    } while (0)

static cuda_result enable_peer(const cuda_device *d, const cuda_device *to) {
    enum { already = 704 };
    int code = d->api->enable_peer(to->context, 0);
    if (code && code != already) return (cuda_result){code, name_enable_peer};
    return ok;
}

cuda_result cuda_peer_enable(const cuda_device *d, const cuda_device *to) { IN(d, enable_peer(d, to)); }

static cuda_result mem_alloc(const cuda_device *d, size_t n, cuda_ptr *out) {
    CALL(d->api, mem_alloc, (out, n));
    return ok;
}

cuda_result cuda_alloc(const cuda_device *d, size_t n, cuda_ptr *out) { IN(d, mem_alloc(d, n, out)); }

static cuda_result mem_free(const cuda_device *d, cuda_ptr p) {
    CALL(d->api, mem_free, (p));
    return ok;
}

cuda_result cuda_free(const cuda_device *d, cuda_ptr p) { IN(d, mem_free(d, p)); }

static cuda_result host_alloc(const cuda_device *d, size_t n, void **out, cuda_ptr *address) {
    enum { portable = 1, mapped = 2 };
    CALL(d->api, host_alloc, (out, n, portable | mapped));
    CALL(d->api, host_address, (address, *out, 0));
    return ok;
}

cuda_result cuda_host_alloc(const cuda_device *d, size_t n, void **out, cuda_ptr *address) {
    IN(d, host_alloc(d, n, out, address));
}

static cuda_result host_free(const cuda_device *d, void *p) {
    CALL(d->api, host_free, (p));
    return ok;
}

cuda_result cuda_host_free(const cuda_device *d, void *p) { IN(d, host_free(d, p)); }

static cuda_result module_load(const cuda_device *d, const void *image, char *log, size_t n, cuda_handle *out) {
    enum { error_log = 5, error_log_size = 6 };
    int options[] = {error_log, error_log_size};
    void *values[] = {log, (void *)n};
    log[0] = 0;
    CALL(d->api, module_load, (out, image, 2, options, values));
    return ok;
}

cuda_result cuda_module_load(const cuda_device *d, const void *image, char *log, size_t n, cuda_handle *out) {
    IN(d, module_load(d, image, log, n, out));
}

static cuda_result module_unload(const cuda_device *d, cuda_handle module) {
    CALL(d->api, module_unload, (module));
    return ok;
}

cuda_result cuda_module_unload(const cuda_device *d, cuda_handle module) { IN(d, module_unload(d, module)); }

static cuda_result function(const cuda_device *d, cuda_handle module, const char *name, cuda_handle *out, int *threads) {
    enum { max_threads = 0 };
    const cuda_api *api = d->api;
    CALL(api, module_function, (out, module, name));
    if (api->function_load) CALL(api, function_load, (*out));
    CALL(api, function_attribute, (threads, max_threads, *out));
    return ok;
}

cuda_result cuda_function(const cuda_device *d, cuda_handle module, const char *name, cuda_handle *out, int *threads) {
    IN(d, function(d, module, name, out, threads));
}

int cuda_parameters(const cuda_device *d, cuda_handle function, unsigned char *sizes, int most) {
    size_t offset, size;
    int n = 0;
    if (!d->api->function_parameter) return -1;
    for (; n < most && !d->api->function_parameter(function, n, &offset, &size); n++) sizes[n] = size;
    return n;
}

static cuda_result share(const cuda_device *d, cuda_handle function, int shared) {
    enum { max_dynamic_shared = 8 };
    CALL(d->api, function_set_attribute, (function, max_dynamic_shared, shared));
    return ok;
}

cuda_result cuda_share(const cuda_device *d, cuda_handle function, int shared) { IN(d, share(d, function, shared)); }

static cuda_result occupancy(const cuda_device *d, cuda_handle function, int threads, int shared, int *blocks) {
    CALL(d->api, occupancy, (blocks, function, threads, shared));
    return ok;
}

cuda_result cuda_occupancy(const cuda_device *d, cuda_handle function, int threads, int shared, int *blocks) {
    IN(d, occupancy(d, function, threads, shared, blocks));
}

static cuda_result stream_create(const cuda_device *d, cuda_handle *out) {
    enum { non_blocking = 1 };
    CALL(d->api, stream_create, (out, non_blocking));
    return ok;
}

cuda_result cuda_stream_create(const cuda_device *d, cuda_handle *out) { IN(d, stream_create(d, out)); }

static cuda_result stream_query(const cuda_device *d, cuda_handle stream, int looks) {
    int code;
    do code = d->api->stream_query(stream);
    while (code == CUDA_NOT_READY && --looks > 0);
    return (cuda_result){code, name_stream_query};
}

cuda_result cuda_stream_query(const cuda_device *d, cuda_handle stream, int looks) {
    IN(d, stream_query(d, stream, looks));
}

static cuda_result launch(const cuda_device *d, cuda_handle stream, cuda_handle function, unsigned blocks,
                          unsigned threads, unsigned shared, uint64_t *args, int nargs, cuda_ptr ended,
                          uint64_t count) {
    void *params[nargs + 1];
    for (int i = 0; i < nargs; i++) params[i] = &args[i];
    CALL(d->api, launch, (function, blocks, 1, 1, threads, 1, 1, shared, stream, params, NULL));
    CALL(d->api, write_wide, (stream, ended, count, 0));
    return ok;
}

cuda_result cuda_launch(const cuda_device *d, cuda_handle stream, cuda_handle function, unsigned blocks, unsigned threads,
                        unsigned shared, uint64_t *args, int nargs, cuda_ptr ended, uint64_t count) {
    IN(d, launch(d, stream, function, blocks, threads, shared, args, nargs, ended, count));
}

enum { unified = 4 }; /* memory that its address tells the place of */

static cuda_result copy(const cuda_device *d, cuda_handle stream, cuda_ptr dst, size_t dst_pitch, cuda_ptr src,
                        size_t src_pitch, size_t width, size_t rows) {
    if (rows == 1) {
        CALL(d->api, copy, (dst, src, width, stream));
        return ok;
    }
    cuda_window w = {.src = {.type = unified, .device = src, .pitch = src_pitch, .height = rows},
                     .dst = {.type = unified, .device = dst, .pitch = dst_pitch, .height = rows},
                     .width = width, .height = rows, .depth = 1};
    CALL(d->api, copy_window, (&w, stream));
    return ok;
}

cuda_result cuda_copy(const cuda_device *d, cuda_handle stream, cuda_ptr dst, size_t dst_pitch, cuda_ptr src,
                      size_t src_pitch, size_t width, size_t rows) {
    IN(d, copy(d, stream, dst, dst_pitch, src, src_pitch, width, rows));
}

static cuda_result write32(const cuda_device *d, cuda_handle stream, cuda_ptr word, uint32_t value) {
    CALL(d->api, write, (stream, word, value, 0));
    return ok;
}

cuda_result cuda_write(const cuda_device *d, cuda_handle stream, cuda_ptr word, uint32_t value) {
    IN(d, write32(d, stream, word, value));
}

static cuda_result wait32(const cuda_device *d, cuda_handle stream, cuda_ptr word, uint32_t value) {
    enum { at_least = 0 }; /* cyclic: (int32_t)(*word - value) >= 0 */
    CALL(d->api, wait, (stream, word, value, at_least));
    return ok;
}

cuda_result cuda_wait(const cuda_device *d, cuda_handle stream, cuda_ptr word, uint32_t value) {
    IN(d, wait32(d, stream, word, value));
}

static cuda_result write64(const cuda_device *d, cuda_handle stream, cuda_ptr word, uint64_t value) {
    CALL(d->api, write_wide, (stream, word, value, 0));
    return ok;
}

cuda_result cuda_write_wide(const cuda_device *d, cuda_handle stream, cuda_ptr word, uint64_t value) {
    IN(d, write64(d, stream, word, value));
}

cuda_step *cuda_chain_new(size_t steps, size_t copies, size_t windows) {
    size_t head = steps * sizeof(cuda_step), wide = windows * sizeof(cuda_window);
    cuda_step *chain = calloc(1, head + wide + copies * (2 * sizeof(cuda_ptr) + sizeof(size_t)));
    if (!chain) return NULL;
    chain[0].window = (cuda_window *)((char *)chain + head);
    chain[0].dst = (cuda_ptr *)((char *)chain + head + wide);
    chain[0].src = chain[0].dst + copies;
    chain[0].bytes = (size_t *)(chain[0].src + copies);
    return chain;
}

void cuda_chain_free(cuda_step *chain) { free(chain); }

/* The most copies in one batch: what was measured. */
enum { batch_copies = 512 };

static cuda_result copies(const cuda_api *api, cuda_handle stream, const cuda_step *s, uint64_t *sent) {
    if (s->copies == 1 || !(api->copy_batch || api->copy_batch_12)) {
        for (size_t i = 0; i < s->copies; i++, ++*sent) CALL(api, copy, (s->dst[i], s->src[i], s->bytes[i], stream));
        return ok;
    }
    cuda_attributes in_stream_order = {.order = 1};
    size_t first = 0;
    for (size_t i = 0; i < s->copies; i += batch_copies, ++*sent) {
        size_t n = s->copies - i < batch_copies ? s->copies - i : batch_copies;
        if (api->copy_batch) {
            CALL(api, copy_batch, (s->dst + i, s->src + i, s->bytes + i, n, &in_stream_order, &first, 1, stream));
        } else {
            size_t failed;
            CALL(api, copy_batch_12,
                 (s->dst + i, s->src + i, s->bytes + i, n, &in_stream_order, &first, 1, &failed, stream));
        }
    }
    return ok;
}

static cuda_result submit(const cuda_device *d, cuda_handle stream, const cuda_step *steps, size_t n, uint32_t round,
                          cuda_ptr passed, uint64_t position, uint64_t *sent) {
    const cuda_api *api = d->api;
    for (const cuda_step *s = steps; s < steps + n; s++) {
        if (s->gate && s->anywhere && round > INT32_MAX) {
            CALL(api, wait, (stream, s->gate, INT32_MAX, 0));
            ++*sent;
        }
        if (s->gate) {
            CALL(api, wait, (stream, s->gate, round, 0));
            ++*sent;
        }
        cuda_result r = copies(api, stream, s, sent);
        if (r.code) return r;
        for (size_t i = 0; i < s->windows; i++, ++*sent) CALL(api, copy_window, (&s->window[i], stream));
        if (s->signal) {
            CALL(api, write, (stream, s->signal, round, 0));
            ++*sent;
        }
    }
    CALL(api, write_wide, (stream, passed, position, 0));
    ++*sent;
    return ok;
}

cuda_result cuda_submit(const cuda_device *d, cuda_handle stream, const cuda_step *steps, size_t n, uint32_t round,
                        cuda_ptr passed, uint64_t position, uint64_t *sent) {
    *sent = 0;
    IN(d, submit(d, stream, steps, n, round, passed, position, sent));
}
