/* cuda_shim.h: the part of CUDA's driver API that Sluice uses, opened at run
 * time. Every call that needs a context takes its device and sets the context
 * within the call, since the caller changes threads between calls. No call
 * waits for a device. */
#ifndef SLUICE_CUDA_SHIM_H
#define SLUICE_CUDA_SHIM_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t cuda_ptr;
typedef void *cuda_handle; /* a context, stream, module or function */

/* A result is 0, or the driver's error and the call that returned it. */
typedef struct {
    int code;
    const char *call;
} cuda_result;

enum { CUDA_NOT_READY = 600 };

/* As the driver lays them out. */
typedef struct {
    size_t x, y, z, lod;
    unsigned type;
    void *host;
    cuda_ptr device;
    void *array, *reserved;
    size_t pitch, height;
} cuda_operand;

typedef struct {
    cuda_operand src, dst;
    size_t width, height, depth;
} cuda_window;

/* A chunk: wait until the word at gate has come to the round, copy, and bring
 * the word at signal to the round. A gate or signal of 0 is left out. A gate
 * that may be anywhere below a round in the upper half is waited for twice,
 * since the driver compares cyclically. */
typedef struct {
    cuda_ptr gate, signal;
    int anywhere;
    cuda_ptr *dst, *src; /* linear copies */
    size_t *bytes;
    size_t copies;
    cuda_window *window;
    size_t windows;
} cuda_step;

typedef struct cuda_api cuda_api;

typedef struct {
    const cuda_api *api;
    int ordinal;
    cuda_handle context;
} cuda_device;

/* cuda_open opens the library and starts the driver, or says in why (of size
 * n) what is missing. Settings that the user has not made are made first. */
cuda_api *cuda_open(const char *library, char *why, size_t n, int *devices, int *version);

const char *cuda_error_name(const cuda_api *api, int code);
const char *cuda_error_text(const cuda_api *api, int code);

/* Whether a batch of copies is one call; else each is one. */
int cuda_has_batches(const cuda_api *api);

cuda_result cuda_device_open(const cuda_api *api, int ordinal, cuda_device **out);
cuda_result cuda_device_name(const cuda_device *d, char *name, int n);
cuda_result cuda_device_attribute(const cuda_device *d, int attribute, int *out);
cuda_result cuda_peer_access(const cuda_device *d, const cuda_device *to, int *can);
cuda_result cuda_peer_enable(const cuda_device *d, const cuda_device *to);

/* These may wait for everything that the device does. */
cuda_result cuda_alloc(const cuda_device *d, size_t n, cuda_ptr *out);
cuda_result cuda_free(const cuda_device *d, cuda_ptr p);
cuda_result cuda_host_alloc(const cuda_device *d, size_t n, void **out, cuda_ptr *address);
cuda_result cuda_host_free(const cuda_device *d, void *p);
cuda_result cuda_module_load(const cuda_device *d, const void *image, char *log, size_t n, cuda_handle *out);
cuda_result cuda_module_unload(const cuda_device *d, cuda_handle module);

/* A function is loaded onto the device here. */
cuda_result cuda_function(const cuda_device *d, cuda_handle module, const char *name, cuda_handle *out, int *threads);
/* How many parameters a function has, with their sizes; -1 if the driver cannot
 * tell. */
int cuda_parameters(const cuda_device *d, cuda_handle function, unsigned char *sizes, int most);
/* Lets each CTA of the function have so many bytes of dynamic shared memory. */
cuda_result cuda_share(const cuda_device *d, cuda_handle function, int shared);
cuda_result cuda_occupancy(const cuda_device *d, cuda_handle function, int threads, int shared, int *blocks);

cuda_result cuda_stream_create(const cuda_device *d, cuda_handle *out);
/* CUDA_NOT_READY while something on the stream has not ended. It asks again up
 * to looks times. */
cuda_result cuda_stream_query(const cuda_device *d, cuda_handle stream, int looks);

/* A launch, and then the write of count to the word at ended. */
cuda_result cuda_launch(const cuda_device *d, cuda_handle stream, cuda_handle function, unsigned blocks, unsigned threads,
                        unsigned shared, uint64_t *args, int nargs, cuda_ptr ended, uint64_t count);

/* rows of width bytes from src to dst. */
cuda_result cuda_copy(const cuda_device *d, cuda_handle stream, cuda_ptr dst, size_t dst_pitch, cuda_ptr src,
                      size_t src_pitch, size_t width, size_t rows);
cuda_result cuda_write(const cuda_device *d, cuda_handle stream, cuda_ptr word, uint32_t value);
cuda_result cuda_wait(const cuda_device *d, cuda_handle stream, cuda_ptr word, uint32_t value);
cuda_result cuda_write_wide(const cuda_device *d, cuda_handle stream, cuda_ptr word, uint64_t value);

/* A chain's steps and all that they point to are one allocation. */
cuda_step *cuda_chain_new(size_t steps, size_t copies, size_t windows);
void cuda_chain_free(cuda_step *chain);

/* cuda_submit puts the steps on the stream, and then the write of position to
 * the word at passed. sent counts the commands that were put there. */
cuda_result cuda_submit(const cuda_device *d, cuda_handle stream, const cuda_step *steps, size_t n, uint32_t round,
                        cuda_ptr passed, uint64_t position, uint64_t *sent);

#endif
