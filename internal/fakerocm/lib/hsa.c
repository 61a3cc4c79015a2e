/* The part of libhsa-runtime64 that user-mode SDMA queues need, as of
 * hsa_ext_amd.h 1.32. Built with FAKEROCM_OLD it is that of ROCm 7 and before:
 * without hsa_amd_queue_create. */
#include "fake.h"

#include <stdlib.h>
#include <string.h>

typedef uint32_t Status;
enum { SUCCESS = 0, BREAK = 1, INVALID_ARGUMENT = 0x1001, INVALID_CREATION = 0x1002, INVALID_AGENT = 0x1004,
       OUT_OF_RESOURCES = 0x1008, INVALID_QUEUE = 0x1009, NOT_INITIALIZED = 0x100b, EXCEPTION = 0x1016 };

typedef struct {
    uint64_t handle; /* 1 is the processor, 2 the first device */
} Agent;

static int starts;

API Status hsa_init(void) {
    __atomic_add_fetch(&starts, 1, __ATOMIC_RELAXED);
    return SUCCESS;
}

API Status hsa_shut_down(void) {
    __atomic_sub_fetch(&starts, 1, __ATOMIC_RELAXED);
    return SUCCESS;
}

API Status hsa_status_string(Status status, const char **text) {
    static const struct {
        Status status;
        const char *text;
    } texts[] = {
        {SUCCESS, "HSA_STATUS_SUCCESS"},
        {INVALID_ARGUMENT, "HSA_STATUS_ERROR_INVALID_ARGUMENT"},
        {INVALID_CREATION, "HSA_STATUS_ERROR_INVALID_QUEUE_CREATION"},
        {INVALID_AGENT, "HSA_STATUS_ERROR_INVALID_AGENT"},
        {OUT_OF_RESOURCES, "HSA_STATUS_ERROR_OUT_OF_RESOURCES"},
        {INVALID_QUEUE, "HSA_STATUS_ERROR_INVALID_QUEUE"},
        {NOT_INITIALIZED, "HSA_STATUS_ERROR_NOT_INITIALIZED"},
        {EXCEPTION, "HSA_STATUS_ERROR_EXCEPTION"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].status == status) {
            *text = texts[i].text;
            return SUCCESS;
        }
    return INVALID_ARGUMENT;
}

API Status hsa_iterate_agents(Status (*each)(Agent, void *), void *data) {
    if (!starts) return NOT_INITIALIZED;
    Settings s = settings();
    for (int i = 0; i <= s.devices; i++) {
        Status status = each((Agent){(uint64_t)i + 1}, data);
        if (status != SUCCESS) return status;
    }
    return SUCCESS;
}

API Status hsa_agent_get_info(Agent agent, uint32_t attribute, void *value) {
    int device = (int)agent.handle - 2;
    switch (attribute) {
    case 17: *(uint32_t *)value = device >= 0; return SUCCESS; /* HSA_AGENT_INFO_DEVICE: processor, GPU */
    case 0xa006: *(uint32_t *)value = 0x1100u * (uint32_t)(device + 1); return SUCCESS; /* BDFID: bus 0x11, 0x22, ... */
    case 0xa00f: *(uint32_t *)value = 0; return SUCCESS; /* DOMAIN */
    }
    return INVALID_ARGUMENT;
}

#ifdef FAKEROCM_OLD

API Status hsa_queue_destroy(void *queue) {
    (void)queue;
    return INVALID_QUEUE;
}

#else

/* hsa_queue_t, as hsa.h has it. */
typedef struct {
    uint32_t type, features;
    void *base_address;
    uint64_t doorbell_signal;
    uint32_t size, reserved1;
    uint64_t id;
} Public;

typedef struct {
    Public public; /* first: the caller's pointer is ours */
    Queue queue;
    void *page; /* read pointer, write pointer and doorbell, a line each */
    void (*callback)(Status, Public *, void *);
    void *data;
} Made;

typedef struct {
    uint16_t version, flags;
    uint8_t engine_type, reserved_header[3];
    uint32_t queue_size_bytes, priority;
    void (*callback)(Status, Public *, void *);
    void *callback_data;
    Public *queue;
    union {
        struct {
            uint32_t sdma_engine_id, reserved[7];
        } sdma;
        uint64_t words[4];
    } engine;
    uint32_t traffic_class;
    uint8_t reserved[20];
} Descriptor;

_Static_assert(sizeof(Descriptor) == 96, "hsa_amd_queue_create_desc_t has 96 bytes");
_Static_assert(sizeof(Public) == 40, "hsa_queue_t has 40 bytes");

static void told(Queue *q, const char *what) {
    (void)what;
    Made *m = q->owner;
    if (m->callback) m->callback(EXCEPTION, &m->public, m->data);
}

static Status check(const Descriptor *d) {
    static const Descriptor zero;
    if (d->version != 1 || d->traffic_class || memcmp(d->reserved, zero.reserved, sizeof d->reserved) ||
        memcmp(d->reserved_header, zero.reserved_header, sizeof d->reserved_header) || d->priority > 2 ||
        memcmp(d->engine.sdma.reserved, zero.engine.sdma.reserved, sizeof zero.engine.sdma.reserved))
        return INVALID_ARGUMENT;
    if (d->engine_type != 1 || d->flags) return INVALID_CREATION;
    uint32_t n = d->queue_size_bytes, id = d->engine.sdma.sdma_engine_id;
    if (n < 1024 || n & (n - 1) || (id >= ENGINES && id != UINT32_MAX)) return INVALID_ARGUMENT;
    return SUCCESS;
}

static Status create(int device, Descriptor *d) {
    static uint64_t ids;
    Status status = settings().no_hsa ? INVALID_CREATION : check(d);
    if (status != SUCCESS) return status;
    Made *m = calloc(1, sizeof *m);
    m->page = memory_new(HOST, 4096);
    m->public.base_address = memory_new(HOST, d->queue_size_bytes);
    m->public.type = 1;
    m->public.size = d->queue_size_bytes;
    m->public.id = __atomic_add_fetch(&ids, 1, __ATOMIC_RELAXED);
    m->callback = d->callback;
    m->data = d->callback_data;
    m->queue = (Queue){
        .device = device,
        .engine = d->engine.sdma.sdma_engine_id == UINT32_MAX ? -1 : (int)d->engine.sdma.sdma_engine_id,
        .ring = m->public.base_address,
        .size = d->queue_size_bytes,
        .read = m->page,
        .doorbell = (uint64_t *)((char *)m->page + 128),
        .told = told,
        .owner = m,
    };
    if (!m->page || !m->public.base_address || queue_start(&m->queue, 0, ENGINES)) {
        if (m->page) memory_free(m->page, true);
        if (m->public.base_address) memory_free(m->public.base_address, true);
        free(m);
        return OUT_OF_RESOURCES;
    }
    m->public.doorbell_signal = (uint64_t)(uintptr_t)m->queue.doorbell;
    d->queue = &m->public;
    return SUCCESS;
}

API Status hsa_amd_queue_create(Agent agent, Descriptor *descriptors, uint32_t n) {
    if (!starts) return NOT_INITIALIZED;
    if (!descriptors || !n) return INVALID_ARGUMENT;
    int device = (int)agent.handle - 2;
    if (device < 0 || device >= settings().devices) return INVALID_AGENT;
    Status first = SUCCESS;
    for (uint32_t i = 0; i < n; i++) {
        descriptors[i].queue = NULL;
        Status status = create(device, &descriptors[i]);
        if (first == SUCCESS) first = status;
    }
    return first;
}

API Status hsa_amd_queue_get_info(Public *queue, uint32_t attribute, void *value) {
    Made *m = (Made *)queue;
    switch (attribute) {
    case 1: *(uint64_t *)value = (uint64_t)(uintptr_t)m->queue.doorbell; return SUCCESS;
    case 13: *(uint32_t *)value = 1; return SUCCESS;
    case 14: *(uint32_t *)value = (uint32_t)m->queue.engine; return SUCCESS;
    case 15: *(uint64_t *)value = (uint64_t)(uintptr_t)m->queue.read; return SUCCESS;
    case 16: *(uint64_t *)value = (uint64_t)(uintptr_t)((char *)m->page + 64); return SUCCESS;
    }
    return INVALID_ARGUMENT;
}

API Status hsa_queue_destroy(Public *queue) {
    Made *m = (Made *)queue;
    if (!m) return INVALID_QUEUE;
    queue_end(&m->queue);
    memory_free(m->page, true);
    memory_free(m->public.base_address, true);
    free(m);
    return SUCCESS;
}

#endif
