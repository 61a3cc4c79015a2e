// The scenarios on an NVIDIA GPU. Build and run, from kernels/:
//
//   nvcc -O2 -Iinclude test/driver.cpp test/scenario.cpp -lcuda -o /tmp/driver
//   /tmp/driver embedded/sm_90.ptx /tmp/probe.cubin [rounds [pinned]]
//
// The second module is test/probe.cpp, built by nvcc or clang. A module may be
// PTX, a cubin or a fatbin. With "pinned", buffers and gates lie in host memory
// that kernels reach over the link.
#include "scenario.h"

#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

static void must(CUresult result, const char *what) {
    if (result == CUDA_SUCCESS) return;
    const char *why = "unknown";
    cuGetErrorString(result, &why);
    std::fprintf(stderr, "driver: %s: %s\n", what, why);
    std::exit(3);
}

namespace {

using scenario::word;

class StreamRun : public scenario::Run {
  public:
    StreamRun(CUstream stream, std::vector<CUstream> *idle) : stream(stream), idle(idle) {}
    ~StreamRun() override { wait(); }
    int wait() override {
        if (stream) {
            result = cuStreamSynchronize(stream);
            idle->push_back(stream);
            stream = nullptr;
        }
        return result;
    }

  private:
    int result = 0;
    CUstream stream;
    std::vector<CUstream> *idle;
};

class Gpu : public scenario::Backend {
  public:
    Gpu(int modules, char **paths, bool pinned) : pinned(pinned) {
        must(cuInit(0), "cuInit");
        must(cuDeviceGet(&device, 0), "cuDeviceGet");
        must(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
        must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
        for (int i = 0; i < modules; i++) {
            std::ifstream file(paths[i], std::ios::binary);
            std::string image((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
            CUmodule module;
            must(cuModuleLoadData(&module, image.c_str()), paths[i]);
            unsigned count = 0;
            must(cuModuleGetFunctionCount(&count, module), "cuModuleGetFunctionCount");
            std::vector<CUfunction> all(count);
            must(cuModuleEnumerateFunctions(all.data(), count, module), "cuModuleEnumerateFunctions");
            for (CUfunction f : all) {
                const char *name;
                must(cuFuncGetName(&name, f), "cuFuncGetName");
                functions[name] = f;
            }
        }
        must(cuStreamCreate(&engine, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
        idle.resize(8);
        for (CUstream &s : idle) must(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    }
    word alloc(std::size_t bytes) override {
        CUdeviceptr p = 0;
        if (pinned) {
            void *host;
            must(cuMemHostAlloc(&host, bytes, CU_MEMHOSTALLOC_DEVICEMAP), "cuMemHostAlloc");
            p = reinterpret_cast<CUdeviceptr>(host);
        } else {
            must(cuMemAlloc(&p, bytes), "cuMemAlloc");
        }
        must(cuMemsetD8Async(p, 0, bytes, engine), "cuMemsetD8Async");
        must(cuStreamSynchronize(engine), "cuStreamSynchronize");
        return p;
    }
    void write(word to, const void *from, std::size_t bytes) override { move(to, reinterpret_cast<word>(from), bytes); }
    void read(void *to, word from, std::size_t bytes) override { move(reinterpret_cast<word>(to), from, bytes); }
    scenario::Run *launch(const char *kernel, unsigned blocks, unsigned threads,
                          const std::vector<word> &args) override {
        std::vector<void *> pointers;
        for (const word &a : args) pointers.push_back(const_cast<word *>(&a));
        CUstream stream = idle.back();
        idle.pop_back();
        must(cuLaunchKernel(functions[kernel], blocks, 1, 1, threads, 1, 1, 0, stream, pointers.data(), nullptr),
             kernel);
        return new StreamRun(stream, &idle);
    }
    unsigned gate(word addr) override {
        unsigned value;
        read(&value, addr, sizeof value);
        return value;
    }
    void copy(word to, word from, word width, word height, word pitch) override {
        CUDA_MEMCPY2D c = {};
        c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
        c.srcDevice = from, c.srcPitch = pitch;
        c.dstDevice = to, c.dstPitch = pitch;
        c.WidthInBytes = width, c.Height = height;
        must(cuMemcpy2DAsync(&c, engine), "cuMemcpy2DAsync");
    }
    void signal(word addr, word round) override {
        must(cuStreamWriteValue32(engine, addr, (unsigned)round, CU_STREAM_WRITE_VALUE_DEFAULT), "cuStreamWriteValue32");
    }

  private:
    void move(word to, word from, std::size_t bytes) {
        must(cuMemcpyAsync(to, from, bytes, engine), "cuMemcpyAsync");
        must(cuStreamSynchronize(engine), "cuStreamSynchronize");
    }

    bool pinned;
    CUstream engine; // carries what the host and the copies do
    CUdevice device;
    CUcontext context;
    std::map<std::string, CUfunction> functions;
    std::vector<CUstream> idle;
};

} // namespace

int main(int argc, char **argv) {
    if (argc < 3) {
        std::fprintf(stderr, "driver: two modules are needed; see the top of driver.cpp\n");
        return 64;
    }
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1);
    Gpu gpu(2, argv + 1, argc > 4 && std::string(argv[4]) == "pinned");
    return scenario::all(gpu, argc > 3 ? (unsigned)std::atoi(argv[3]) : 200, 6, 96, 128);
}
