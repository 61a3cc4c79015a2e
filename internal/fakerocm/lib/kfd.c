/* The KFD device, as kfd_ioctl.h of the kernel's interface 1.18 has it: open,
 * ioctl and mmap under names of their own, since the real ones are the
 * kernel's. */
#define _GNU_SOURCE
#include "fake.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { DOORBELLS = 1024, DOORBELL_BYTES = 8 * DOORBELLS };

typedef struct {
    uint32_t major, minor;
} Version;

typedef struct {
    uint64_t ring_base_address, write_pointer_address, read_pointer_address, doorbell_offset;
    uint32_t ring_size, gpu_id, queue_type, queue_percentage, queue_priority, queue_id;
    uint64_t eop_buffer_address, eop_buffer_size, ctx_save_restore_address;
    uint32_t ctx_save_restore_size, ctl_stack_size;
    uint32_t sdma_engine_id, pad; /* since 1.17 */
} Create;

typedef struct {
    uint32_t queue_id, pad;
} Destroy;

_Static_assert(sizeof(Create) == 96, "kfd_ioctl_create_queue_args has 96 bytes");

#define IOC(direction, number, bytes) ((unsigned long)(direction) << 30 | (unsigned long)(bytes) << 16 | 'K' << 8 | (number))

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    int memory; /* of the doorbells, made when first needed */
    uint64_t *bells;
} doorbells[MAX_DEVICES];
static struct {
    Queue queue;
    bool used;
} made[DOORBELLS];

/* device finds a device by its gpu_id: 50007, 50014, ... */
static int device(uint32_t gpu_id) {
    int d = (int)(gpu_id - 50000) / 7 - 1;
    return d >= 0 && d < settings().devices && gpu_id == 50007u + 7u * (uint32_t)d ? d : -1;
}

API int sluice_kfd_open(const char *path, int flags) {
    if (strcmp(path, "/dev/kfd") || (flags & O_ACCMODE) != O_RDWR) return errno = ENOENT, -1;
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (fd >= 0) COUNT(files, 1);
    return fd;
}

API int sluice_kfd_close(int fd) {
    COUNT(files, -1);
    return close(fd);
}

static bool bells_of(int d) {
    if (doorbells[d].bells) return true;
    int fd = memfd_create("doorbells", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, DOORBELL_BYTES)) return false;
    void *p = mmap(NULL, DOORBELL_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) return close(fd), false;
    doorbells[d].memory = fd;
    doorbells[d].bells = p;
    return true;
}

/* engines says which engines a type of queue may use. */
static bool engines(const Create *c, size_t bytes, int *fixed, int *low, int *high) {
    *fixed = -1, *low = 0, *high = XGMI_FROM;
    switch (c->queue_type) {
    case 1: return true;
    case 3: *low = XGMI_FROM, *high = ENGINES; return true;
    case 4:
        if (settings().kfd_minor < 17 || bytes < sizeof(Create) || c->sdma_engine_id >= ENGINES) return false;
        *fixed = (int)c->sdma_engine_id;
        return true;
    }
    return false;
}

static int create(Create *c, size_t bytes) {
    int d = device(c->gpu_id), fixed, low, high, id = 0;
    if (d < 0 || !engines(c, bytes, &fixed, &low, &high)) return EINVAL;
    uint32_t n = c->ring_size;
    if (n < 1024 || n & (n - 1) || c->queue_percentage > 100 || c->queue_priority > 15) return EINVAL;
    uint64_t page = c->read_pointer_address & ~4095ull;
    if (!memory_whole(c->ring_base_address, n) || !memory_whole(page, 4096) ||
        (c->write_pointer_address & ~4095ull) != page)
        return EINVAL;
    while (id < DOORBELLS && made[id].used) id++;
    if (id == DOORBELLS || !bells_of(d)) return ENOMEM;
    doorbells[d].bells[id] = 0;
    made[id].queue = (Queue){.device = d,
                             .engine = fixed,
                             .ring = (uint8_t *)c->ring_base_address,
                             .size = n,
                             .read = (uint64_t *)c->read_pointer_address,
                             .doorbell = &doorbells[d].bells[id]};
    int failed = queue_start(&made[id].queue, low, high);
    if (failed) return failed;
    made[id].used = true;
    c->queue_id = (uint32_t)id;
    c->doorbell_offset = 3ull << 62 | (uint64_t)c->gpu_id << 46 | (uint64_t)id * 8;
    return 0;
}

static int destroy(const Destroy *a) {
    if (a->queue_id >= DOORBELLS || !made[a->queue_id].used) return EINVAL;
    queue_end(&made[a->queue_id].queue);
    made[a->queue_id].used = false;
    return 0;
}

API int sluice_kfd_ioctl(int fd, unsigned long request, void *argument) {
    (void)fd;
    int failed = ENOTTY;
    pthread_mutex_lock(&lock);
    if (request == IOC(2, 1, sizeof(Version))) {
        *(Version *)argument = (Version){1, (uint32_t)settings().kfd_minor};
        failed = 0;
    } else if (request == IOC(3, 2, sizeof(Create)) || request == IOC(3, 2, sizeof(Create) - 8)) {
        failed = create(argument, request >> 16 & 0x3fff);
    } else if (request == IOC(3, 3, sizeof(Destroy))) {
        failed = destroy(argument);
    }
    pthread_mutex_unlock(&lock);
    if (failed) return errno = failed, -1;
    return 0;
}

API void *sluice_kfd_mmap(size_t bytes, int fd, uint64_t offset) {
    (void)fd;
    int d = device((uint32_t)(offset >> 46 & 0xffff));
    if (d < 0 || bytes != DOORBELL_BYTES || offset % DOORBELL_BYTES || !doorbells[d].bells) return errno = EINVAL, NULL;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, doorbells[d].memory, 0);
    return p == MAP_FAILED ? NULL : p;
}

API int sluice_kfd_munmap(void *p, size_t bytes) { return munmap(p, bytes); }
