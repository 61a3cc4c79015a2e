/* The part of libamdhip64 that deals with devices and memory. */
#include "fake.h"

#include <stdio.h>
#include <string.h>

typedef int Error;
enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, INVALID_DEVICE = 101, PEER_UNSUPPORTED = 217,
       PEER_ENABLED = 704, NOT_FOUND = 500, NOT_READY = 600, NO_DEVICE = 100, NO_BINARY = 209, INVALID_IMAGE = 200,
       INVALID_HANDLE = 400, LAUNCH_FAILURE = 719 };

static _Thread_local int current;
static bool enabled[MAX_DEVICES][MAX_DEVICES];

/* current_device is the calling thread's. */
int current_device(void) { return current; }

static bool valid(int device) { return device >= 0 && device < settings().devices; }

API const char *hipGetErrorName(Error e) {
    switch (e) {
    case SUCCESS: return "hipSuccess";
    case INVALID_VALUE: return "hipErrorInvalidValue";
    case OUT_OF_MEMORY: return "hipErrorOutOfMemory";
    case NO_DEVICE: return "hipErrorNoDevice";
    case INVALID_DEVICE: return "hipErrorInvalidDevice";
    case INVALID_IMAGE: return "hipErrorInvalidImage";
    case NO_BINARY: return "hipErrorNoBinaryForGpu";
    case PEER_UNSUPPORTED: return "hipErrorPeerAccessUnsupported";
    case INVALID_HANDLE: return "hipErrorInvalidHandle";
    case NOT_FOUND: return "hipErrorNotFound";
    case NOT_READY: return "hipErrorNotReady";
    case PEER_ENABLED: return "hipErrorPeerAccessAlreadyEnabled";
    case LAUNCH_FAILURE: return "hipErrorLaunchFailure";
    }
    return "hipErrorUnknown";
}

API Error hipInit(unsigned flags) { return flags ? INVALID_VALUE : SUCCESS; }

API Error hipRuntimeGetVersion(int *version) {
    *version = 70051831;
    return SUCCESS;
}

API Error hipGetDeviceCount(int *count) {
    *count = settings().devices;
    return *count ? SUCCESS : NO_DEVICE;
}

API Error hipSetDevice(int device) {
    if (!valid(device)) return INVALID_DEVICE;
    current = device;
    return SUCCESS;
}

API Error hipDeviceGetPCIBusId(char *id, int room, int device) {
    if (!valid(device)) return INVALID_DEVICE;
    int n = snprintf(id, (size_t)room, "0000:%02x:00.0", 0x11 * (device + 1));
    return n < room ? SUCCESS : INVALID_VALUE;
}

API Error hipDeviceCanAccessPeer(int *can, int device, int peer) {
    if (!valid(device) || !valid(peer)) return INVALID_DEVICE;
    *can = device != peer && !settings().no_access[device][peer];
    return SUCCESS;
}

API Error hipDeviceEnablePeerAccess(int peer, unsigned flags) {
    if (!valid(peer) || peer == current) return INVALID_DEVICE;
    if (flags) return INVALID_VALUE;
    if (settings().no_access[current][peer]) return PEER_UNSUPPORTED;
    if (__atomic_exchange_n(&enabled[current][peer], true, __ATOMIC_RELAXED)) return PEER_ENABLED;
    memory_let(current, peer);
    return SUCCESS;
}

API Error hipExtMallocWithFlags(void **p, size_t bytes, unsigned flags) {
    if (flags > 4) return INVALID_VALUE;
    return (*p = memory_new(current, bytes)) ? SUCCESS : OUT_OF_MEMORY;
}

API Error hipFree(void *p) { return !p || memory_free(p, false) ? SUCCESS : INVALID_VALUE; }

API Error hipHostMalloc(void **p, size_t bytes, unsigned flags) {
    if (flags & 0x0ffffff8) return INVALID_VALUE;
    return (*p = memory_new(HOST, bytes)) ? SUCCESS : OUT_OF_MEMORY;
}

API Error hipHostFree(void *p) { return !p || memory_free(p, true) ? SUCCESS : INVALID_VALUE; }
