/* layout.c: compares what cuda_shim.h says of the driver's types with cuda.h.
 * gcc -I/usr/local/cuda/include -c layout.c is enough: it checks while it
 * compiles. */
#include <cuda.h>

#include "cuda_shim.h"

#define SAME(a, b) _Static_assert((a) == (b), #a " is not " #b)
#define FIELD(ours, side, theirs) SAME(offsetof(cuda_window, ours), offsetof(CUDA_MEMCPY3D, theirs))

SAME(sizeof(cuda_ptr), sizeof(CUdeviceptr));
SAME(sizeof(cuda_window), sizeof(CUDA_MEMCPY3D));
FIELD(src.x, src, srcXInBytes);
FIELD(src.lod, src, srcLOD);
FIELD(src.type, src, srcMemoryType);
FIELD(src.host, src, srcHost);
FIELD(src.device, src, srcDevice);
FIELD(src.array, src, srcArray);
FIELD(src.pitch, src, srcPitch);
FIELD(src.height, src, srcHeight);
FIELD(dst.x, dst, dstXInBytes);
FIELD(dst.type, dst, dstMemoryType);
FIELD(dst.device, dst, dstDevice);
FIELD(dst.pitch, dst, dstPitch);
FIELD(dst.height, dst, dstHeight);
FIELD(width, all, WidthInBytes);
FIELD(height, all, Height);
FIELD(depth, all, Depth);

/* As cuda_shim.c has it. */
typedef struct {
    int order;
    int src_type, src_id, dst_type, dst_id;
    unsigned flags;
} attributes;
SAME(sizeof(attributes), sizeof(CUmemcpyAttributes));
SAME(offsetof(attributes, order), offsetof(CUmemcpyAttributes, srcAccessOrder));
SAME(offsetof(attributes, flags), offsetof(CUmemcpyAttributes, flags));
SAME(CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, 1);

SAME(CU_MEMORYTYPE_UNIFIED, 4);
SAME(CU_STREAM_NON_BLOCKING, 1);
SAME(CU_STREAM_WAIT_VALUE_GEQ, 0);
SAME(CU_MEMHOSTALLOC_PORTABLE, 1);
SAME(CU_MEMHOSTALLOC_DEVICEMAP, 2);
SAME(CU_JIT_ERROR_LOG_BUFFER, 5);
SAME(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 6);
SAME(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0);
SAME(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16);
SAME(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 41);
SAME(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75);
SAME(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76);
SAME(CUDA_ERROR_NOT_READY, CUDA_NOT_READY);
SAME(CUDA_ERROR_ILLEGAL_ADDRESS, 700);
SAME(CUDA_ERROR_LAUNCH_TIMEOUT, 702);
SAME(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, 704);
SAME(CUDA_ERROR_ASSERT, 710);
