//go:build cgo

#include "shim.h"

/* ON returns from the caller if the device cannot be made current. */
#define ON(device)                              \
    do {                                        \
        int failed = r->hip.SetDevice(device);  \
        if (failed) return failed;              \
    } while (0)

int rocm_init(rocm *r) { return r->hip.Init(0); }
int rocm_version(rocm *r, int *version) { return r->hip.RuntimeGetVersion(version); }
int rocm_pci(rocm *r, int device, char *id, int room) { return r->hip.DeviceGetPCIBusId(id, room, device); }
const char *rocm_hip_name(rocm *r, int code) { return r->hip.GetErrorName(code); }

int rocm_count(rocm *r, int *devices) {
    *devices = 0;
    int e = r->hip.GetDeviceCount(devices);
    return e == HIP_ERROR_NO_DEVICE ? 0 : e;
}

const char *rocm_hsa_name(rocm *r, uint32_t status) {
    const char *text = "an unknown status";
    r->hsa.status_string(status, &text);
    return text;
}

int rocm_peer(rocm *r, int device, int peer, int *can) { return r->hip.DeviceCanAccessPeer(can, device, peer); }

int rocm_enable_peer(rocm *r, int device, int peer) {
    ON(device);
    int e = r->hip.DeviceEnablePeerAccess(peer, 0);
    return e == HIP_ERROR_PEER_ACCESS_ALREADY_ENABLED ? 0 : e;
}

int rocm_device_memory(rocm *r, int device, size_t bytes, unsigned flags, void **p) {
    ON(device);
    return r->hip.ExtMallocWithFlags(p, bytes, flags);
}

int rocm_free_device_memory(rocm *r, int device, void *p) {
    ON(device);
    return r->hip.Free(p);
}

int rocm_host_memory(rocm *r, int device, size_t bytes, unsigned flags, void **p) {
    ON(device);
    return r->hip.HostMalloc(p, bytes, flags);
}

int rocm_free_host_memory(rocm *r, int device, void *p) {
    ON(device);
    return r->hip.HostFree(p);
}

int rocm_stream(rocm *r, int device, void **stream) {
    ON(device);
    return r->hip.StreamCreateWithFlags(stream, HIP_STREAM_NON_BLOCKING);
}

int rocm_destroy_stream(rocm *r, int device, void *stream) {
    ON(device);
    return r->hip.StreamDestroy(stream);
}

int rocm_event(rocm *r, int device, void **event) {
    ON(device);
    return r->hip.EventCreateWithFlags(event, HIP_EVENT_DISABLE_TIMING);
}

int rocm_destroy_event(rocm *r, int device, void *event) {
    ON(device);
    return r->hip.EventDestroy(event);
}

int rocm_record(rocm *r, int device, void *event, void *stream) {
    ON(device);
    return r->hip.EventRecord(event, stream);
}

int rocm_event_done(rocm *r, int device, void *event) {
    ON(device);
    return r->hip.EventQuery(event);
}

int rocm_stream_done(rocm *r, int device, void *stream) {
    ON(device);
    return r->hip.StreamQuery(stream);
}

int rocm_copy_rows(rocm *r, int device, uint64_t dst, size_t dst_pitch, uint64_t src, size_t src_pitch, size_t width,
                   size_t height, void *stream) {
    ON(device);
    return r->hip.Memcpy2DAsync((void *)dst, dst_pitch, (void *)src, src_pitch, width, height, HIP_MEMCPY_DEFAULT,
                                stream);
}

int rocm_set(rocm *r, int device, uint64_t dst, size_t bytes, void *stream) {
    ON(device);
    return r->hip.MemsetAsync((void *)dst, 0, bytes, stream);
}

int rocm_module(rocm *r, int device, const void *image, void **module) {
    ON(device);
    return r->hip.ModuleLoadData(module, image);
}

int rocm_unload(rocm *r, int device, void *module) {
    ON(device);
    return r->hip.ModuleUnload(module);
}

int rocm_function(rocm *r, int device, void *module, const char *name, void **function) {
    ON(device);
    return r->hip.ModuleGetFunction(function, module, name);
}

int rocm_most_threads(rocm *r, int device, void *function, int *threads) {
    ON(device);
    return r->hip.FuncGetAttribute(threads, HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function);
}

int rocm_launch(rocm *r, int device, void *function, unsigned blocks, unsigned threads, unsigned shared, void *stream,
                void *args, size_t bytes) {
    ON(device);
    /* HIP_LAUNCH_PARAM_BUFFER_POINTER, _BUFFER_SIZE, _END */
    void *extra[] = {(void *)1, args, (void *)2, &bytes, (void *)3};
    return r->hip.ModuleLaunchKernel(function, blocks, 1, 1, threads, 1, 1, shared, stream, NULL, extra);
}
