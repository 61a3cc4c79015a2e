// A stand-in for NVIDIA's driver over the host's memory and threads, with its
// habits: streams take a bounded number of commands and then block the caller
// inside the driver's lock, and calls that allocate, free or load wait for
// everything that the streams do. A wait that nothing will end is reported and
// ends the process.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#include "host.h"

using std::chrono::microseconds;
using std::chrono::seconds;

typedef uint64_t address;
typedef void *handle;

namespace {

enum { OK = 0, INVALID = 1, OUT_OF_MEMORY = 2, INVALID_DEVICE = 101, NOT_FOUND = 500, NOT_READY = 600, ILLEGAL_ADDRESS = 700, LAUNCH_FAILED = 719 };

// What a stream takes before the next command blocks.
const size_t most_commands = 1020, most_copies = 24000;
const seconds patience(5);

std::mutex driver;           // the driver's one lock
std::atomic<int> sticky(OK); // the error that every call returns once there is one

// A device has so many connections, as they are set when the driver starts. With
// as many streams waiting at gates, no kernel runs.
int connections = 0;
std::atomic<int> waiting(0);

[[noreturn]] void hang(const char *call) {
    std::fprintf(stderr, "fakecuda: %s waits for work that does not end: the process hangs\n", call);
    std::fflush(stderr);
    std::abort();
}

// Memory is every allocation, by its end.
struct Memory {
    struct Piece {
        address start;
        bool host;
    };
    std::mutex mutex;
    std::map<address, Piece> pieces;

    void add(void *p, size_t n, bool host) {
        std::lock_guard<std::mutex> lock(mutex);
        pieces[(address)p + n] = {(address)p, host};
    }
    bool remove(address p) {
        std::lock_guard<std::mutex> lock(mutex);
        auto it = pieces.upper_bound(p);
        if (it == pieces.end() || it->second.start != p) return false;
        pieces.erase(it);
        return true;
    }
    bool holds(address p, size_t n, bool *host = nullptr) {
        std::lock_guard<std::mutex> lock(mutex);
        auto it = pieces.upper_bound(p);
        if (it == pieces.end() || it->second.start > p || it->first - p < n) return false;
        if (host) *host = it->second.host;
        return true;
    }
} memory;

struct Stream {
    std::mutex mutex;
    std::condition_variable change;
    std::deque<std::pair<size_t, std::function<void()>>> commands; // copies in each
    size_t copies = 0;
    std::thread thread;

    Stream() : thread([this] { run(); }) { thread.detach(); }

    void run() {
        std::unique_lock<std::mutex> lock(mutex);
        for (;;) {
            change.wait(lock, [this] { return !commands.empty(); });
            auto &first = commands.front();
            lock.unlock();
            if (sticky == OK) first.second();
            lock.lock();
            copies -= first.first;
            commands.pop_front(); // it counts until it is done
            change.notify_all();
        }
    }

    // push is called under the driver's lock.
    void push(size_t n, std::function<void()> command) {
        std::unique_lock<std::mutex> lock(mutex);
        bool room = change.wait_for(lock, patience, [&] { return commands.size() < most_commands && copies + n <= most_copies; });
        if (!room) hang("a submission to a full stream");
        copies += n;
        commands.emplace_back(n, std::move(command));
        change.notify_all();
    }

    bool idle() {
        std::lock_guard<std::mutex> lock(mutex);
        return commands.empty();
    }

    void await(const char *call) {
        std::unique_lock<std::mutex> lock(mutex);
        if (!change.wait_for(lock, patience, [this] { return commands.empty(); })) hang(call);
    }
};

std::vector<Stream *> streams; // under the driver's lock

// quiesce is what some calls do before they begin.
void quiesce(const char *call) {
    for (Stream *s : streams) s->await(call);
}

template <class T> std::atomic<T> &word(address p) { return *(std::atomic<T> *)p; }

void move(address dst, address src, size_t n) {
    if (memory.holds(dst, n) && memory.holds(src, n))
        std::memcpy((void *)dst, (void *)src, n);
    else
        sticky = ILLEGAL_ADDRESS;
}

void write_gate(address p, uint32_t v) {
    if (!memory.holds(p, 4)) sticky = ILLEGAL_ADDRESS;
    else word<uint32_t>(p).store(v);
}

// poll returns once it is so, or the device is lost.
template <class F> void poll(F so) {
    microseconds pause(1);
    while (!so() && sticky == OK) {
        std::this_thread::sleep_for(pause);
        pause = std::min(2 * pause, microseconds(200));
    }
}

void wait_gate(address p, uint32_t v) {
    if (!memory.holds(p, 4)) {
        sticky = ILLEGAL_ADDRESS;
        return;
    }
    waiting++;
    poll([=] { return (int32_t)(word<uint32_t>(p).load() - v) >= 0; });
    waiting--;
}

struct Window {
    struct Side {
        size_t x, y, z, lod;
        unsigned type;
        void *host;
        address device;
        void *array, *reserved;
        size_t pitch, height;
        address row(size_t y, size_t z) const { return device + (z * height + y) * pitch; }
    } src, dst;
    size_t width, height, depth;
};

int devices() {
    const char *n = std::getenv("FAKECUDA_DEVICES");
    return n ? std::atoi(n) : 1;
}

const sluice::host::Kernel *find(const char *name) {
    const sluice::host::Kernel *k = sluice::host::Kernel::all;
    while (k && std::strcmp(k->name, name) != 0) k = k->next;
    return k;
}

// ENTER takes the driver's lock.
#define ENTER                                                                                               \
    std::lock_guard<std::mutex> lock_(driver);                                                             \
    if (sticky != OK) return sticky

} // namespace

extern "C" {

int cuInit(unsigned) {
    const char *n = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    if (!connections) connections = n ? std::atoi(n) : 8;
    return OK;
}
int cuDriverGetVersion(int *v) {
    *v = 13000;
    return OK;
}
int cuGetErrorName(int code, const char **s) {
    switch (code) {
    case INVALID: *s = "CUDA_ERROR_INVALID_VALUE"; return OK;
    case OUT_OF_MEMORY: *s = "CUDA_ERROR_OUT_OF_MEMORY"; return OK;
    case NOT_FOUND: *s = "CUDA_ERROR_NOT_FOUND"; return OK;
    case ILLEGAL_ADDRESS: *s = "CUDA_ERROR_ILLEGAL_ADDRESS"; return OK;
    case LAUNCH_FAILED: *s = "CUDA_ERROR_LAUNCH_FAILED"; return OK;
    }
    *s = nullptr;
    return INVALID;
}
int cuGetErrorString(int code, const char **s) { return cuGetErrorName(code, s); }
int cuDeviceGetCount(int *n) {
    *n = devices();
    return OK;
}
int cuDeviceGet(int *d, int i) {
    if (i < 0 || i >= devices()) return INVALID_DEVICE;
    *d = i;
    return OK;
}
int cuDeviceGetName(char *s, int n, int) {
    std::snprintf(s, n, "fake device");
    return OK;
}
int cuDeviceGetAttribute(int *v, int attribute, int) {
    static const std::map<int, int> values = {{16, 4}, {41, 1}, {75, 9}, {76, 0}};
    auto it = values.find(attribute);
    if (it == values.end()) return INVALID;
    *v = it->second;
    return OK;
}
int cuDevicePrimaryCtxRetain(handle *c, int d) {
    *c = (handle)(uintptr_t)(d + 1);
    return OK;
}

static thread_local std::vector<handle> contexts;

int cuCtxPushCurrent_v2(handle c) {
    contexts.push_back(c);
    return OK;
}
int cuCtxSetCurrent(handle c) {
    contexts.assign(1, c);
    return OK;
}
int cuCtxPopCurrent_v2(handle *c) {
    if (contexts.empty()) return INVALID;
    *c = contexts.back();
    contexts.pop_back();
    return OK;
}
int cuDeviceCanAccessPeer(int *can, int, int) {
    *can = 1;
    return OK;
}

static int allocate(const char *call, size_t n, bool host, void **p) {
    if (n > size_t(8) << 30) return OUT_OF_MEMORY;
    quiesce(call);
    *p = std::aligned_alloc(4096, (n + 4095) / 4096 * 4096);
    if (!*p) return OUT_OF_MEMORY;
    std::memset(*p, 0xA5, n); // nothing is promised
    memory.add(*p, n, host);
    return OK;
}
static int release(const char *call, address p) {
    quiesce(call);
    if (!memory.remove(p)) return INVALID;
    std::free((void *)p);
    return OK;
}
int cuMemAlloc_v2(address *p, size_t n) {
    ENTER;
    return allocate("cuMemAlloc", n, false, (void **)p);
}
int cuMemFree_v2(address p) {
    ENTER;
    return release("cuMemFree", p);
}
int cuMemHostAlloc(void **p, size_t n, unsigned) {
    ENTER;
    return allocate("cuMemHostAlloc", n, true, p);
}
int cuMemFreeHost(void *p) {
    ENTER;
    return release("cuMemFreeHost", (address)p);
}
int cuMemHostGetDevicePointer_v2(address *d, void *p, unsigned) {
    *d = (address)p;
    return OK;
}

int cuCtxEnablePeerAccess(handle, unsigned) {
    ENTER;
    quiesce("cuCtxEnablePeerAccess");
    return OK;
}
int cuStreamCreate(handle *s, unsigned) {
    ENTER;
    quiesce("cuStreamCreate");
    streams.push_back(new Stream);
    *s = streams.back();
    return OK;
}
// While there is a file of the name that FAKECUDA_LOST gives, the device is lost.
int cuStreamQuery(handle s) {
    const char *lost = std::getenv("FAKECUDA_LOST");
    if (lost && access(lost, F_OK) == 0) sticky = LAUNCH_FAILED;
    if (sticky != OK) return sticky;
    return ((Stream *)s)->idle() ? OK : NOT_READY;
}
int cuMemcpyAsync(address dst, address src, size_t n, handle s) {
    ENTER;
    bool from_host, to_host;
    if (memory.holds(src, n, &from_host) && memory.holds(dst, n, &to_host) && from_host && to_host) {
        ((Stream *)s)->await("a copy between two host buffers"); // it is not asynchronous
        move(dst, src, n);
        return OK;
    }
    ((Stream *)s)->push(0, [=] { move(dst, src, n); });
    return OK;
}
int cuMemcpy3DAsync_v2(const Window *w, handle s) {
    ENTER;
    for (const Window::Side *e : {&w->src, &w->dst})
        if (e->type != 4 || e->pitch < w->width || e->height < w->height) return INVALID;
    Window c = *w;
    ((Stream *)s)->push(c.depth, [=] {
        for (size_t z = 0; z < c.depth; z++)
            for (size_t y = 0; y < c.height; y++) move(c.dst.row(y, z), c.src.row(y, z), c.width);
    });
    return OK;
}
struct Rectangle {
    struct Side {
        size_t x, y;
        unsigned type;
        void *host;
        address device;
        void *array;
        size_t pitch;
    } src, dst;
    size_t width, height;
};
int cuMemcpy2DAsync_v2(const Rectangle *r, handle s) {
    ENTER;
    Rectangle c = *r;
    ((Stream *)s)->push(0, [=] {
        for (size_t y = 0; y < c.height; y++) move(c.dst.device + y * c.dst.pitch, c.src.device + y * c.src.pitch, c.width);
    });
    return OK;
}
int cuMemcpyBatchAsync_v2(address *dst, address *src, size_t *bytes, size_t n, void *, size_t *, size_t attributes, handle s) {
    ENTER;
    if (n == 0 || attributes != 1) return INVALID;
    std::vector<address> to(dst, dst + n), from(src, src + n);
    std::vector<size_t> size(bytes, bytes + n);
    ((Stream *)s)->push(n, [=] {
        for (size_t i = n; i-- > 0;) move(to[i], from[i], size[i]); // in no order that one could build on
    });
    return OK;
}
int cuStreamWaitValue32_v2(handle s, address p, uint32_t v, unsigned flags) {
    ENTER;
    if (flags != 0 || p % 4) return INVALID;
    ((Stream *)s)->push(0, [=] { wait_gate(p, v); });
    return OK;
}
int cuStreamWriteValue32_v2(handle s, address p, uint32_t v, unsigned) {
    ENTER;
    if (p % 4) return INVALID;
    ((Stream *)s)->push(0, [=] { write_gate(p, v); });
    return OK;
}
int cuStreamWriteValue64_v2(handle s, address p, uint64_t v, unsigned) {
    ENTER;
    if (p % 8) return INVALID;
    ((Stream *)s)->push(0, [=] {
        if (!memory.holds(p, 8)) sticky = ILLEGAL_ADDRESS;
        else word<uint64_t>(p).store(v);
    });
    return OK;
}

int cuModuleLoadDataEx(handle *m, const void *image, unsigned options, int *option, void **value) {
    ENTER;
    quiesce("cuModuleLoadDataEx");
    if (!std::strstr((const char *)image, ".version")) {
        for (unsigned i = 0; i < options; i++)
            if (option[i] == 5) std::snprintf((char *)value[i], 64, "fakecuda: no PTX");
        return INVALID;
    }
    *m = new char;
    return OK;
}
int cuModuleUnload(handle m) {
    ENTER;
    quiesce("cuModuleUnload");
    delete (char *)m;
    return OK;
}
int cuModuleGetFunction(handle *f, handle, const char *name) {
    ENTER;
    *f = (handle)find(name);
    return *f ? OK : NOT_FOUND;
}
int cuFuncLoad(handle) {
    ENTER;
    quiesce("cuFuncLoad");
    return OK;
}
int cuFuncGetAttribute(int *v, int attribute, handle) {
    if (attribute != 0) return INVALID;
    *v = 4; // threads: each is one of the system's
    return OK;
}
int cuFuncGetParamInfo(handle f, size_t i, size_t *offset, size_t *size) {
    if (i >= ((const sluice::host::Kernel *)f)->nargs) return INVALID;
    *offset = 8 * i;
    *size = 8;
    return OK;
}
int cuFuncSetAttribute(handle, int attribute, int value) {
    ENTER;
    quiesce("cuFuncSetAttribute");
    enum { max_dynamic_shared = 8, most = 227 * 1024 };
    return attribute == max_dynamic_shared && value >= 0 && value <= most ? OK : INVALID;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *n, handle, int, size_t) {
    *n = 8;
    return OK;
}
int cuLaunchKernel(handle f, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned, unsigned, handle s, void **params, void **) {
    ENTER;
    const sluice::host::Kernel *k = (const sluice::host::Kernel *)f;
    std::vector<unsigned long long> args;
    for (unsigned i = 0; i < k->nargs; i++) args.push_back(*(unsigned long long *)params[i]);
    ((Stream *)s)->push(0, [=] {
        poll([] { return waiting < connections; });
        if (sluice_host_launch(k->name, blocks, threads, args.data(), args.size()) != SLUICE_HOST_OK) sticky = LAUNCH_FAILED;
    });
    return OK;
}
}
