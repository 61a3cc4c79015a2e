/* Memory of the devices and pinned memory of the host, all of it mapped pages
 * of this process. */
#include "fake.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

typedef struct Allocation {
    uint64_t start, bytes, mapped;
    int device;
    struct Allocation *next;
} Allocation;

/* Readers use memory; who frees it waits for them. */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static Allocation *all;
static uint64_t used[MAX_DEVICES];
static bool let[MAX_DEVICES][MAX_DEVICES];

/* dirty makes device memory look used, since a driver does not clear it. */
static void dirty(uint8_t *p, size_t bytes) {
    size_t n = bytes < 16 * PAGE ? bytes : 16 * PAGE;
    memset(p, 0xa5, n);
    memset(p + bytes - n, 0xa5, n);
}

void *memory_new(int device, size_t bytes) {
    if (bytes == 0) return NULL;
    Settings s = settings();
    Allocation *a = calloc(1, sizeof *a);
    a->mapped = (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
    void *p = mmap(NULL, a->mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_rwlock_wrlock(&lock);
    bool full = device != HOST && used[device] + bytes > s.memory;
    if (p == MAP_FAILED || full) {
        pthread_rwlock_unlock(&lock);
        if (p != MAP_FAILED) munmap(p, a->mapped);
        free(a);
        return NULL;
    }
    if (device != HOST) used[device] += bytes;
    a->start = (uint64_t)(uintptr_t)p;
    a->bytes = bytes;
    a->device = device;
    a->next = all;
    all = a;
    pthread_rwlock_unlock(&lock);
    if (device != HOST) dirty(p, bytes);
    COUNT(allocations, 1);
    return p;
}

bool memory_free(void *p, bool host) {
    pthread_rwlock_wrlock(&lock);
    Allocation **at = &all;
    while (*at && (*at)->start != (uint64_t)(uintptr_t)p) at = &(*at)->next;
    Allocation *a = *at;
    if (!a || (a->device == HOST) != host) {
        pthread_rwlock_unlock(&lock);
        return false;
    }
    *at = a->next;
    if (a->device != HOST) used[a->device] -= a->bytes;
    munmap(p, a->mapped);
    pthread_rwlock_unlock(&lock);
    free(a);
    COUNT(allocations, -1);
    return true;
}

void memory_let(int from, int to) {
    pthread_rwlock_wrlock(&lock);
    let[from][to] = true;
    pthread_rwlock_unlock(&lock);
}

static const Allocation *find(uint64_t p, uint64_t n) {
    for (const Allocation *a = all; a; a = a->next)
        if (p >= a->start && p - a->start <= a->bytes && n <= a->bytes - (p - a->start)) return a;
    return NULL;
}

bool memory_begin(int device, uint64_t p, uint64_t n) {
    pthread_rwlock_rdlock(&lock);
    const Allocation *a = find(p, n);
    if (a && (a->device == HOST || a->device == device || let[device][a->device])) return true;
    pthread_rwlock_unlock(&lock);
    return false;
}

void memory_end(void) { pthread_rwlock_unlock(&lock); }

bool memory_whole(uint64_t p, uint64_t n) {
    pthread_rwlock_rdlock(&lock);
    const Allocation *a = find(p, n);
    bool whole = a && a->start == p && a->bytes == n;
    pthread_rwlock_unlock(&lock);
    return whole;
}
