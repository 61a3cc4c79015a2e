//go:build cgo

#include "shim.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>

/* ---- By HSA. ---- */

typedef struct {
    rocm *r;
    rocm_place at;
    hsa_agent found;
} search;

/* is_it stops the iteration at the agent that sits where the device does. */
static uint32_t is_it(hsa_agent agent, void *data) {
    search *s = data;
    uint32_t kind = 0, location = 0, domain = 0;
    if (s->r->hsa.agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &kind) || kind != HSA_DEVICE_TYPE_GPU ||
        s->r->hsa.agent_get_info(agent, HSA_AMD_AGENT_INFO_BDFID, &location) ||
        s->r->hsa.agent_get_info(agent, HSA_AMD_AGENT_INFO_DOMAIN, &domain))
        return 0;
    if (location != s->at.location || domain != s->at.domain) return 0;
    s->found = agent;
    return 1; /* HSA_STATUS_INFO_BREAK */
}

/* failed is called by the runtime, from a thread of its own. */
static void failed(uint32_t status, hsa_queue *source, void *data) {
    (void)source;
    rocm_queue *q = data;
    __atomic_store_n(&q->error, status, __ATOMIC_RELEASE);
}

static uint32_t pointers(rocm *r, rocm_queue *q, const char **call) {
    static const uint32_t what[] = {HSA_AMD_QUEUE_INFO_READ_POINTER, HSA_AMD_QUEUE_INFO_WRITE_POINTER,
                                    HSA_AMD_QUEUE_INFO_DOORBELL_ID};
    uint64_t **to[] = {&q->read, &q->write, &q->doorbell};
    *call = "hsa_amd_queue_get_info";
    for (int i = 0; i < 3; i++) {
        uint64_t address = 0;
        uint32_t status = r->hsa.amd_queue_get_info(q->hsa, what[i], &address);
        if (status) return status;
        *to[i] = (uint64_t *)address;
    }
    return 0;
}

uint32_t rocm_hsa_queue(rocm *r, rocm_place at, size_t bytes, rocm_queue **to, const char **call) {
    search s = {r, at, {0}};
    *call = "hsa_iterate_agents";
    uint32_t status = r->hsa.iterate_agents(is_it, &s);
    if (status != 1) return status ? status : 0x1004; /* HSA_STATUS_ERROR_INVALID_AGENT */
    rocm_queue *q = calloc(1, sizeof *q);
    hsa_queue_descriptor d = {
        .version = HSA_AMD_QUEUE_CREATE_DESC_VERSION,
        .engine_type = HSA_AMD_QUEUE_ENGINE_SDMA,
        .queue_size_bytes = (uint32_t)bytes,
        .priority = HSA_AMD_QUEUE_PRIORITY_NORMAL,
        .callback = failed,
        .callback_data = q,
        .engine.sdma.sdma_engine_id = at.engine,
    };
    *call = "hsa_amd_queue_create";
    status = r->hsa.amd_queue_create(s.found, &d, 1);
    if (!status) {
        q->hsa = d.queue;
        q->ring = d.queue->base_address;
        q->bytes = d.queue->size;
        status = pointers(r, q, call);
        if (status) r->hsa.queue_destroy(q->hsa);
    }
    if (status) {
        free(q);
        return status;
    }
    *to = q;
    return 0;
}

/* ---- By KFD. ---- */

/* ask opens the device, once, and learns what it offers. */
static int ask(rocm *r, kfd_version *v, const char **call) {
    *call = "open /dev/kfd";
    if (r->kfd_fd < 0) r->kfd_fd = r->kfd.open("/dev/kfd", O_RDWR);
    if (r->kfd_fd < 0) return errno;
    *call = "AMDKFD_IOC_GET_VERSION";
    return r->kfd.ioctl(r->kfd_fd, KFD_IOC_GET_VERSION, v) ? errno : 0;
}

/* type_of is the most exact kind of queue that the kernel offers. */
static uint32_t type_of(kfd_version v, rocm_place at) {
    if (v.major_version == 1 && v.minor_version >= KFD_BY_ENG_ID_MINOR) return KFD_QUEUE_TYPE_SDMA_BY_ENG_ID;
    return at.xgmi ? KFD_QUEUE_TYPE_SDMA_XGMI : KFD_QUEUE_TYPE_SDMA;
}

int rocm_kfd_queue(rocm *r, rocm_place at, void *ring, size_t bytes, void *page, rocm_queue **to, uint32_t *type,
                   const char **call) {
    kfd_version version = {0, 0};
    int e = ask(r, &version, call);
    if (e) return e;
    uint64_t *read = page, *write = read + 8; /* a cache line apart */
    kfd_create_queue c = {
        .ring_base_address = (uint64_t)(uintptr_t)ring,
        .ring_size = (uint32_t)bytes,
        .read_pointer_address = (uint64_t)(uintptr_t)read,
        .write_pointer_address = (uint64_t)(uintptr_t)write,
        .gpu_id = at.gpu,
        .queue_type = type_of(version, at),
        .queue_percentage = KFD_MAX_QUEUE_PERCENTAGE,
        .queue_priority = KFD_NORMAL_PRIORITY,
        .sdma_engine_id = at.engine,
    };
    *type = c.queue_type;
    *call = "AMDKFD_IOC_CREATE_QUEUE";
    if (r->kfd.ioctl(r->kfd_fd, KFD_IOC_CREATE_QUEUE, &c)) return errno;
    *call = "mmap of the doorbells";
    uint64_t inside = KFD_DOORBELL_SLICE - 1;
    char *bells = r->kfd.mmap(KFD_DOORBELL_SLICE, r->kfd_fd, c.doorbell_offset & ~inside);
    if (!bells) {
        e = errno;
        kfd_destroy_queue d = {.queue_id = c.queue_id};
        r->kfd.ioctl(r->kfd_fd, KFD_IOC_DESTROY_QUEUE, &d);
        return e;
    }
    rocm_queue *q = calloc(1, sizeof *q);
    q->ring = ring;
    q->bytes = bytes;
    q->read = read;
    q->write = write;
    q->doorbell = (uint64_t *)(bells + (c.doorbell_offset & inside));
    q->kfd_id = c.queue_id;
    q->kfd_doorbells = bells;
    *to = q;
    return 0;
}

/* ---- Either. ---- */

/* keep holds what the runtime may still report to after hsa_queue_destroy: it
 * calls back when the driver has reset the queue. */
static void keep(rocm_queue *q) {
    static _Atomic(rocm_queue *) ended;
    q->next = atomic_load(&ended);
    while (!atomic_compare_exchange_weak(&ended, &q->next, q)) {
    }
}

uint32_t rocm_end_queue(rocm *r, rocm_queue *q) {
    uint32_t result = 0;
    if (q->hsa) {
        result = r->hsa.queue_destroy(q->hsa);
    } else {
        kfd_destroy_queue d = {.queue_id = q->kfd_id};
        if (r->kfd.ioctl(r->kfd_fd, KFD_IOC_DESTROY_QUEUE, &d)) result = (uint32_t)errno;
        r->kfd.munmap(q->kfd_doorbells, KFD_DOORBELL_SLICE);
    }
    if (q->hsa)
        keep(q);
    else
        free(q);
    return result;
}

uint32_t rocm_queue_error(rocm_queue *q) { return __atomic_load_n(&q->error, __ATOMIC_ACQUIRE); }

void rocm_ring(uint64_t *doorbell, uint64_t count) {
    atomic_thread_fence(memory_order_release);
    *(volatile uint64_t *)doorbell = count;
}
