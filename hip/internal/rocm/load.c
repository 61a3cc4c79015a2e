//go:build cgo

#include "shim.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

static _Thread_local char missing[256];

static const char *say(const char *what) {
    snprintf(missing, sizeof missing, "%s", what);
    return missing;
}

/* find looks name up in a library and stores it at to; the first one missing
 * stays in missing. */
static void find(void *library, const char *name, void *to, size_t size) {
    void *f = dlsym(library, name);
    if (!f && !*missing) snprintf(missing, sizeof missing, "it has no function %s", name);
    memcpy(to, &f, size);
}

static void *begin(const char *path, const char **error) {
    *missing = 0;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    *error = library ? NULL : say(dlerror());
    return library;
}

#define FIND(prefix, table, name) find(library, prefix #name, &table.name, sizeof table.name)

const char *rocm_load_hip(rocm *r, const char *path) {
    const char *error;
    void *library = begin(path, &error);
    if (!library) return error;
    FIND("hip", r->hip, Init);
    FIND("hip", r->hip, RuntimeGetVersion);
    FIND("hip", r->hip, GetDeviceCount);
    FIND("hip", r->hip, SetDevice);
    FIND("hip", r->hip, DeviceGetPCIBusId);
    FIND("hip", r->hip, DeviceCanAccessPeer);
    FIND("hip", r->hip, DeviceEnablePeerAccess);
    FIND("hip", r->hip, ExtMallocWithFlags);
    FIND("hip", r->hip, Free);
    FIND("hip", r->hip, HostMalloc);
    FIND("hip", r->hip, HostFree);
    FIND("hip", r->hip, StreamCreateWithFlags);
    FIND("hip", r->hip, StreamDestroy);
    FIND("hip", r->hip, StreamQuery);
    FIND("hip", r->hip, EventCreateWithFlags);
    FIND("hip", r->hip, EventDestroy);
    FIND("hip", r->hip, EventQuery);
    FIND("hip", r->hip, EventRecord);
    FIND("hip", r->hip, Memcpy2DAsync);
    FIND("hip", r->hip, MemsetAsync);
    FIND("hip", r->hip, ModuleLoadData);
    FIND("hip", r->hip, ModuleUnload);
    FIND("hip", r->hip, ModuleGetFunction);
    FIND("hip", r->hip, FuncGetAttribute);
    FIND("hip", r->hip, ModuleLaunchKernel);
    FIND("hip", r->hip, GetErrorName);
    return *missing ? missing : NULL;
}

const char *rocm_load_hsa(rocm *r, const char *path) {
    const char *error;
    void *library = begin(path, &error);
    if (!library) return error;
    FIND("hsa_", r->hsa, init);
    FIND("hsa_", r->hsa, status_string);
    FIND("hsa_", r->hsa, iterate_agents);
    FIND("hsa_", r->hsa, agent_get_info);
    FIND("hsa_", r->hsa, queue_destroy);
    if (*missing) return missing;
    FIND("hsa_", r->hsa, amd_queue_create);
    FIND("hsa_", r->hsa, amd_queue_get_info);
    if (!r->hsa.amd_queue_get_info) r->hsa.amd_queue_create = NULL;
    if (r->hsa.init()) return say("hsa_init failed");
    return NULL;
}

static int system_open(const char *path, int flags) { return open(path, flags | O_CLOEXEC); }
static int system_ioctl(int fd, unsigned long request, void *argument) { return ioctl(fd, request, argument); }
static void *system_mmap(size_t bytes, int fd, uint64_t offset) {
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
    return p == MAP_FAILED ? NULL : p;
}

const char *rocm_load_kfd(rocm *r, const char *path) {
    r->kfd_fd = -1;
    if (!*path) {
        r->kfd = (kfd_calls){system_open, close, system_ioctl, system_mmap, munmap};
        return NULL;
    }
    const char *error;
    void *library = begin(path, &error);
    if (!library) return error;
    FIND("sluice_kfd_", r->kfd, open);
    FIND("sluice_kfd_", r->kfd, close);
    FIND("sluice_kfd_", r->kfd, ioctl);
    FIND("sluice_kfd_", r->kfd, mmap);
    FIND("sluice_kfd_", r->kfd, munmap);
    return *missing ? missing : NULL;
}
