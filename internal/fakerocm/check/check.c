/* check drives the shim of hip/internal/rocm over the emulated ROCm, without Go,
 * so that sanitizers see all of the C code: memory, queues made as the library
 * offers them, every packet, streams, kernels, and queues that end while their
 * engines misbehave. It frees everything, and a leak checker finds nothing.
 *
 *   check LIBRARY CODE_OBJECT DEVICES
 */
#include "shim.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MUST(condition)                                                             \
    do {                                                                            \
        if (!(condition)) {                                                         \
            fprintf(stderr, "check: line %d: not so: %s\n", __LINE__, #condition);  \
            exit(1);                                                                \
        }                                                                           \
    } while (0)

enum { RING = 4096, BYTES = 1 << 16, ENGINE = 4 };

static rocm r;
static int (*tell)(const char *);

static uint64_t load(const uint64_t *p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }

/* await waits at most half a minute for a word. */
static int await(const uint64_t *word, uint64_t value) {
    struct timespec t = {0, 100000};
    for (int i = 0; i < 300000 && load(word) != value; i++) nanosleep(&t, NULL);
    return load(word) == value;
}

/* ---- Queues. ---- */

typedef struct {
    rocm_queue *q;
    void *ring, *page; /* that KFD's queue lies in */
    int device;
    size_t at;
} queue;

static queue make(int device) {
    queue u = {.device = device};
    rocm_place at = {.domain = 0, .location = 0x1100u * (unsigned)(device + 1), .gpu = 50007u + 7u * (unsigned)device,
                     .engine = ENGINE, .xgmi = 1};
    const char *call;
    uint32_t type;
    if (r.hsa.amd_queue_create) {
        MUST(rocm_hsa_queue(&r, at, RING, &u.q, &call) == 0);
        return u;
    }
    MUST(rocm_host_memory(&r, device, RING, HIP_HOST_MALLOC_MAPPED, &u.ring) == 0);
    MUST(rocm_host_memory(&r, device, 4096, HIP_HOST_MALLOC_MAPPED, &u.page) == 0);
    memset(u.page, 0, 4096);
    MUST(rocm_kfd_queue(&r, at, u.ring, RING, u.page, &u.q, &type, &call) == 0);
    MUST(type == KFD_QUEUE_TYPE_SDMA_BY_ENG_ID);
    return u;
}

static void end(queue *u) {
    MUST(rocm_end_queue(&r, u->q) == 0);
    if (u->ring) MUST(rocm_free_host_memory(&r, u->device, u->ring) == 0);
    if (u->page) MUST(rocm_free_host_memory(&r, u->device, u->page) == 0);
}

static void put(queue *u, uint32_t dword) {
    memcpy((char *)u->q->ring + u->at, &dword, 4);
    u->at += 4;
}

static void put_address(queue *u, const void *p) {
    put(u, (uint32_t)(uintptr_t)p);
    put(u, (uint32_t)((uintptr_t)p >> 32));
}

static void ring(queue *u) {
    __atomic_store_n(u->q->write, u->at, __ATOMIC_RELEASE);
    rocm_ring(u->q->doorbell, u->at);
}

/* carry sends a gate, a copy, a window and a signal from one device's memory to
 * another's. */
static void carry(int from, int to) {
    void *src, *dst;
    MUST(rocm_device_memory(&r, from, BYTES, HIP_DEVICE_MALLOC_FINEGRAINED, &src) == 0);
    MUST(rocm_device_memory(&r, to, BYTES, HIP_DEVICE_MALLOC_FINEGRAINED, &dst) == 0);
    for (int i = 0; i < BYTES; i++) ((unsigned char *)src)[i] = (unsigned char)(i * 7 + from);
    memset(dst, 0, BYTES);
    uint64_t *gate = (uint64_t *)((char *)src + BYTES - 64), *signal = (uint64_t *)((char *)dst + BYTES - 64);
    *gate = 0;
    queue u = make(from);
    put(&u, 8u | 5u << 28 | 1u << 31), put_address(&u, gate), put(&u, 3), put(&u, 0xffffffff), put(&u, 10 | 0xfffu << 16);
    put(&u, 1), put(&u, 999), put(&u, 0), put_address(&u, src), put_address(&u, dst);
    put(&u, 1 | 36 << 8);
    for (int side = 0; side < 2; side++) {
        put_address(&u, (char *)(side ? dst : src) + 4096);
        for (int i = 0; i < 3; i++) put(&u, 0);
        put(&u, 63), put(&u, 0), put(&u, 0);
    }
    put(&u, 31), put(&u, 9), put(&u, 0);
    put(&u, 10 | 0x2fu << 25), put_address(&u, signal), put(&u, 1), put(&u, 0), put(&u, 0), put(&u, 0), put(&u, 0);
    ring(&u);
    MUST(load(signal) == 0);
    __atomic_store_n(gate, 3, __ATOMIC_RELEASE);
    MUST(await(signal, 1));
    MUST(await(u.q->read, u.at));
    MUST(memcmp(src, dst, 1000) == 0 && ((char *)dst)[1000] == 0);
    for (int row = 0; row < 10; row++) MUST(memcmp((char *)src + 4096 + 64 * row, (char *)dst + 4096 + 64 * row, 32) == 0);
    end(&u);
    MUST(rocm_free_device_memory(&r, from, src) == 0);
    MUST(rocm_free_device_memory(&r, to, dst) == 0);
}

/* misbehave ends a queue whose engine does what it is told. */
static void misbehave(int devices, const char *how, int reported) {
    char text[128];
    snprintf(text, sizeof text, "devices=%d %s", devices, how);
    MUST(tell(text) == 0);
    queue u = make(0);
    for (int i = 0; i < 100; i++) put(&u, 0); /* NOPs */
    ring(&u);
    struct timespec t = {0, 20000000};
    for (int i = 0; i < 500 && reported && !rocm_queue_error(u.q); i++) nanosleep(&t, NULL);
    MUST(!reported || rocm_queue_error(u.q));
    end(&u);
    snprintf(text, sizeof text, "devices=%d", devices);
    MUST(tell(text) == 0);
}

/* ---- Streams and kernels. ---- */

static void *read_file(const char *path) {
    FILE *f = fopen(path, "rb");
    MUST(f);
    fseek(f, 0, SEEK_END);
    long n = ftell(f);
    rewind(f);
    void *p = malloc((size_t)n);
    MUST(fread(p, 1, (size_t)n, f) == (size_t)n);
    fclose(f);
    return p;
}

static void run_kernel(int device, const void *image) {
    void *module, *function, *stream, *event, *memory;
    MUST(rocm_module(&r, device, image, &module) == 0);
    MUST(rocm_function(&r, device, module, "script", &function) == 0);
    MUST(rocm_function(&r, device, module, "nosuch", &(void *){0}) == 500);
    MUST(rocm_stream(&r, device, &stream) == 0);
    MUST(rocm_event(&r, device, &event) == 0);
    MUST(rocm_device_memory(&r, device, BYTES, HIP_DEVICE_MALLOC_FINEGRAINED, &memory) == 0);
    MUST(rocm_set(&r, device, (uint64_t)memory, BYTES, stream) == 0);
    uint64_t *word = memory, program[] = {1, 2, /* STORE */ 8, (uint64_t)(word + 100), 42, 0, 0, 0, 0, 0, /* END */ 0, 0, 0, 0, 0, 0, 0, 0};
    MUST(rocm_copy_rows(&r, device, (uint64_t)(word + 512), sizeof program, (uint64_t)program, sizeof program, sizeof program, 1, stream) == 0);
    uint64_t args[] = {0, (uint64_t)(word + 512)};
    MUST(rocm_launch(&r, device, function, 1, 4, 0, stream, args, sizeof args) == 0);
    MUST(rocm_record(&r, device, event, stream) == 0);
    struct timespec t = {0, 100000};
    int done = HIP_ERROR_NOT_READY;
    for (int i = 0; i < 300000 && done == HIP_ERROR_NOT_READY; i++) {
        nanosleep(&t, NULL);
        done = rocm_event_done(&r, device, event);
    }
    MUST(done == 0 && rocm_stream_done(&r, device, stream) == 0);
    MUST(word[100] == 42);
    MUST(rocm_destroy_event(&r, device, event) == 0);
    MUST(rocm_destroy_stream(&r, device, stream) == 0);
    MUST(rocm_free_device_memory(&r, device, memory) == 0);
    MUST(rocm_unload(&r, device, module) == 0);
}

int main(int argc, char **argv) {
    MUST(argc == 4);
    int devices = atoi(argv[3]), found = 0;
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    MUST(library);
    *(void **)&tell = dlsym(library, "fakerocm_tell");
    void (*counts)(long *);
    *(void **)&counts = dlsym(library, "fakerocm_counts");
    char text[32];
    snprintf(text, sizeof text, "devices=%d", devices);
    MUST(tell(text) == 0);
    MUST(!rocm_load_hip(&r, argv[1]) && !rocm_load_hsa(&r, argv[1]) && !rocm_load_kfd(&r, argv[1]));
    MUST(rocm_init(&r) == 0 && rocm_count(&r, &found) == 0 && found == devices);
    void *image = read_file(argv[2]);
    for (int d = 0; d < devices; d++) {
        for (int p = 0; p < devices; p++) {
            if (p != d) MUST(rocm_enable_peer(&r, d, p) == 0);
            carry(d, p);
        }
        run_kernel(d, image);
    }
    int hsa = r.hsa.amd_queue_create != NULL;
    misbehave(devices, "dead=0:4", 0);
    misbehave(devices, "stall=0:4:3", 0);
    misbehave(devices, "slow=0:4:1000", 0);
    misbehave(devices, "error=0:4:3", hsa);
    free(image);
    long held[8];
    counts(held);
    for (int i = 0; i < 5; i++) MUST(held[i] == 0); /* allocations, queues, streams, events, modules */
    if (r.kfd_fd >= 0) r.kfd.close(r.kfd_fd);
    printf("check: %d devices, queues by %s: nothing is left\n", devices, hsa ? "HSA" : "KFD");
    return 0;
}
