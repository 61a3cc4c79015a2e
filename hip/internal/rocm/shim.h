/* shim.h: ROCm's libraries, opened at run time. Prototypes, values and layouts
 * are those of hip_runtime_api.h (HIP 6 and 7), hsa.h, hsa_ext_amd.h (interface
 * 1.31) and kfd_ioctl.h (interface 1.17); nothing of them is needed to build. */
#ifndef SLUICE_ROCM_SHIM_H
#define SLUICE_ROCM_SHIM_H

#include <stddef.h>
#include <stdint.h>

/* ---- Layouts that cross to ROCm. ---- */

typedef struct {
    uint64_t handle;
} hsa_agent;

typedef struct {
    uint32_t type, features;
    void *base_address;
    uint64_t doorbell_signal;
    uint32_t size, reserved1;
    uint64_t id;
} hsa_queue;

typedef struct {
    uint16_t version, flags;
    uint8_t engine_type, reserved_header[3];
    uint32_t queue_size_bytes, priority;
    void (*callback)(uint32_t status, hsa_queue *source, void *data);
    void *callback_data;
    hsa_queue *queue;
    union {
        uint64_t align;
        struct {
            uint32_t sdma_engine_id, reserved[7];
        } sdma;
    } engine;
    uint32_t traffic_class;
    uint8_t reserved[20];
} hsa_queue_descriptor;

typedef struct {
    uint32_t major_version, minor_version;
} kfd_version;

typedef struct {
    uint64_t ring_base_address, write_pointer_address, read_pointer_address, doorbell_offset;
    uint32_t ring_size, gpu_id, queue_type, queue_percentage, queue_priority, queue_id;
    uint64_t eop_buffer_address, eop_buffer_size, ctx_save_restore_address;
    uint32_t ctx_save_restore_size, ctl_stack_size, sdma_engine_id, pad;
} kfd_create_queue;

typedef struct {
    uint32_t queue_id, pad;
} kfd_destroy_queue;

enum {
    HSA_AGENT_INFO_DEVICE = 17,
    HSA_DEVICE_TYPE_GPU = 1,
    HSA_AMD_AGENT_INFO_BDFID = 0xa006,
    HSA_AMD_AGENT_INFO_DOMAIN = 0xa00f,
    HSA_AMD_QUEUE_CREATE_DESC_VERSION = 1,
    HSA_AMD_QUEUE_ENGINE_SDMA = 1,
    HSA_AMD_QUEUE_PRIORITY_NORMAL = 1,
    HSA_AMD_QUEUE_INFO_DOORBELL_ID = 1,
    HSA_AMD_QUEUE_INFO_READ_POINTER = 15,
    HSA_AMD_QUEUE_INFO_WRITE_POINTER = 16,
    KFD_QUEUE_TYPE_SDMA = 1,
    KFD_QUEUE_TYPE_SDMA_XGMI = 3,
    KFD_QUEUE_TYPE_SDMA_BY_ENG_ID = 4,
    KFD_BY_ENG_ID_MINOR = 17,
    KFD_MAX_QUEUE_PERCENTAGE = 100,
    KFD_NORMAL_PRIORITY = 7,
    KFD_DOORBELL_SLICE = 8192, /* 1024 queues of a process, 8 bytes each */
    HIP_HOST_MALLOC_MAPPED = 0x2,
    HIP_HOST_MALLOC_UNCACHED = 0x10000000,
    HIP_HOST_MALLOC_COHERENT = 0x40000000,
    HIP_DEVICE_MALLOC_FINEGRAINED = 0x1,
    HIP_STREAM_NON_BLOCKING = 0x1,
    HIP_EVENT_DISABLE_TIMING = 0x2,
    HIP_MEMCPY_DEFAULT = 4,
    HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
    HIP_ERROR_NO_DEVICE = 100,
    HIP_ERROR_NOT_READY = 600,
    HIP_ERROR_PEER_ACCESS_ALREADY_ENABLED = 704,
};

#define KFD_IOC(direction, number, type) \
    ((unsigned long)(direction) << 30 | (unsigned long)sizeof(type) << 16 | (unsigned long)'K' << 8 | (number))
#define KFD_IOC_GET_VERSION KFD_IOC(2, 0x01, kfd_version)
#define KFD_IOC_CREATE_QUEUE KFD_IOC(3, 0x02, kfd_create_queue)
#define KFD_IOC_DESTROY_QUEUE KFD_IOC(3, 0x03, kfd_destroy_queue)

/* ---- The libraries. ---- */

/* kfd_calls is how the KFD device is reached: the system's calls, or those of a
 * library that stands in for the kernel. */
typedef struct {
    int (*open)(const char *path, int flags);
    int (*close)(int fd);
    int (*ioctl)(int fd, unsigned long request, void *argument);
    void *(*mmap)(size_t bytes, int fd, uint64_t offset); /* NULL and errno if it fails */
    int (*munmap)(void *at, size_t bytes);
} kfd_calls;

typedef struct {
    int (*Init)(unsigned);
    int (*RuntimeGetVersion)(int *);
    int (*GetDeviceCount)(int *);
    int (*SetDevice)(int);
    int (*DeviceGetPCIBusId)(char *, int, int);
    int (*DeviceCanAccessPeer)(int *, int, int);
    int (*DeviceEnablePeerAccess)(int, unsigned);
    int (*ExtMallocWithFlags)(void **, size_t, unsigned);
    int (*Free)(void *);
    int (*HostMalloc)(void **, size_t, unsigned);
    int (*HostFree)(void *);
    int (*StreamCreateWithFlags)(void **, unsigned);
    int (*StreamDestroy)(void *);
    int (*StreamQuery)(void *);
    int (*EventCreateWithFlags)(void **, unsigned);
    int (*EventDestroy)(void *);
    int (*EventQuery)(void *);
    int (*EventRecord)(void *, void *);
    int (*Memcpy2DAsync)(void *, size_t, const void *, size_t, size_t, size_t, int, void *);
    int (*MemsetAsync)(void *, int, size_t, void *);
    int (*ModuleLoadData)(void **, const void *);
    int (*ModuleUnload)(void *);
    int (*ModuleGetFunction)(void **, void *, const char *);
    int (*FuncGetAttribute)(int *, int, void *);
    int (*ModuleLaunchKernel)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                              void **, void **);
    const char *(*GetErrorName)(int);
} hip_calls;

typedef struct {
    uint32_t (*init)(void);
    uint32_t (*status_string)(uint32_t, const char **);
    uint32_t (*iterate_agents)(uint32_t (*)(hsa_agent, void *), void *);
    uint32_t (*agent_get_info)(hsa_agent, uint32_t, void *);
    uint32_t (*queue_destroy)(hsa_queue *);
    uint32_t (*amd_queue_create)(hsa_agent, hsa_queue_descriptor *, uint32_t); /* NULL before ROCm 10 */
    uint32_t (*amd_queue_get_info)(hsa_queue *, uint32_t, void *);
} hsa_calls;

typedef struct {
    hip_calls hip;
    hsa_calls hsa;
    kfd_calls kfd;
    int kfd_fd; /* -1 until it is needed */
} rocm;

/* rocm_load opens a library and looks its functions up; it returns NULL, or
 * what is missing, valid until the next call on the thread. */
const char *rocm_load_hip(rocm *r, const char *path);
const char *rocm_load_hsa(rocm *r, const char *path);
/* An empty path stands for the kernel, another for a library whose functions
 * sluice_kfd_open, _close, _ioctl, _mmap and _munmap stand in for it. */
const char *rocm_load_kfd(rocm *r, const char *path);

int rocm_init(rocm *r);
int rocm_version(rocm *r, int *version);
int rocm_count(rocm *r, int *devices);
int rocm_pci(rocm *r, int device, char *id, int room);
const char *rocm_hip_name(rocm *r, int code);
const char *rocm_hsa_name(rocm *r, uint32_t status);

/* Every call that belongs to a device makes it current itself: the caller may
 * be on another thread each time. They return a hipError_t. */
int rocm_peer(rocm *r, int device, int peer, int *can);
int rocm_enable_peer(rocm *r, int device, int peer);
int rocm_device_memory(rocm *r, int device, size_t bytes, unsigned flags, void **p);
int rocm_free_device_memory(rocm *r, int device, void *p);
int rocm_host_memory(rocm *r, int device, size_t bytes, unsigned flags, void **p);
int rocm_free_host_memory(rocm *r, int device, void *p);
int rocm_stream(rocm *r, int device, void **stream);
int rocm_destroy_stream(rocm *r, int device, void *stream);
int rocm_event(rocm *r, int device, void **event);
int rocm_destroy_event(rocm *r, int device, void *event);
int rocm_record(rocm *r, int device, void *event, void *stream);
int rocm_event_done(rocm *r, int device, void *event);
int rocm_stream_done(rocm *r, int device, void *stream);
int rocm_copy_rows(rocm *r, int device, uint64_t dst, size_t dst_pitch, uint64_t src, size_t src_pitch, size_t width,
                   size_t height, void *stream);
int rocm_set(rocm *r, int device, uint64_t dst, size_t bytes, void *stream);
int rocm_module(rocm *r, int device, const void *image, void **module);
int rocm_unload(rocm *r, int device, void *module);
int rocm_function(rocm *r, int device, void *module, const char *name, void **function);
int rocm_most_threads(rocm *r, int device, void *function, int *threads);
int rocm_launch(rocm *r, int device, void *function, unsigned blocks, unsigned threads, unsigned shared, void *stream,
                void *args, size_t bytes);

/* ---- Queues. ---- */

/* rocm_queue is a user-mode SDMA queue, however it was made. */
typedef struct rocm_queue rocm_queue;
struct rocm_queue {
    void *ring;
    size_t bytes;
    uint64_t *read, *write, *doorbell;
    uint32_t error; /* what the runtime reports of it, as a status of HSA; 0 if nothing */
    hsa_queue *hsa; /* NULL: made by KFD */
    uint32_t kfd_id;
    void *kfd_doorbells;
    rocm_queue *next; /* once it has ended */
};

typedef struct {
    uint32_t domain, location; /* of the device on PCI */
    uint32_t gpu;              /* KFD's gpu_id */
    uint32_t engine;
    int xgmi; /* the engine is one of those */
} rocm_place;

/* rocm_hsa_queue makes a queue by hsa_amd_queue_create and returns a status of
 * HSA, and in call what returned it. */
uint32_t rocm_hsa_queue(rocm *r, rocm_place at, size_t bytes, rocm_queue **to, const char **call);
/* rocm_kfd_queue makes one by ioctl, with a ring and a page for its pointers
 * that the caller owns, and returns an errno. type is what the kernel was asked
 * for. */
int rocm_kfd_queue(rocm *r, rocm_place at, void *ring, size_t bytes, void *page, rocm_queue **to, uint32_t *type,
                   const char **call);
/* rocm_end_queue destroys it; what it returns is of HSA or an errno, as it was
 * made. */
uint32_t rocm_end_queue(rocm *r, rocm_queue *q);
uint32_t rocm_queue_error(rocm_queue *q);
/* rocm_ring tells the engine of everything written before: one plain store of
 * 64 bits behind a release fence, as a doorbell page takes it. */
void rocm_ring(uint64_t *doorbell, uint64_t count);

/* Offsets, for the test that compares the layouts with the headers. */
enum {
    offsetof_descriptor_engine_type = offsetof(hsa_queue_descriptor, engine_type),
    offsetof_descriptor_queue_size = offsetof(hsa_queue_descriptor, queue_size_bytes),
    offsetof_descriptor_priority = offsetof(hsa_queue_descriptor, priority),
    offsetof_descriptor_callback = offsetof(hsa_queue_descriptor, callback),
    offsetof_descriptor_queue = offsetof(hsa_queue_descriptor, queue),
    offsetof_descriptor_engine = offsetof(hsa_queue_descriptor, engine),
    offsetof_descriptor_traffic_class = offsetof(hsa_queue_descriptor, traffic_class),
    offsetof_queue_base_address = offsetof(hsa_queue, base_address),
    offsetof_queue_doorbell_signal = offsetof(hsa_queue, doorbell_signal),
    offsetof_queue_size = offsetof(hsa_queue, size),
    offsetof_create_doorbell_offset = offsetof(kfd_create_queue, doorbell_offset),
    offsetof_create_ring_size = offsetof(kfd_create_queue, ring_size),
    offsetof_create_queue_type = offsetof(kfd_create_queue, queue_type),
    offsetof_create_queue_id = offsetof(kfd_create_queue, queue_id),
    offsetof_create_eop_buffer_address = offsetof(kfd_create_queue, eop_buffer_address),
    offsetof_create_sdma_engine_id = offsetof(kfd_create_queue, sdma_engine_id),
};

#endif
