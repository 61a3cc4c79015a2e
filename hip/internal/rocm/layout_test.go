//go:build cgo

package rocm

import "testing"

// The headers that ROCm and the kernel publish, at the versions from which the
// values were read.
const (
	hsaHeader    = "ROCm/rocm-systems projects/rocr-runtime/runtime/hsa-runtime/inc/hsa.h (ROCm 7)"
	hsaAMDHeader = "ROCm/rocm-systems projects/rocr-runtime/runtime/hsa-runtime/inc/hsa_ext_amd.h, interface 1.32"
	kfdHeader    = "Linux include/uapi/linux/kfd_ioctl.h, interface 1.18"
	hipHeader    = "ROCm/rocm-systems projects/hip/include/hip/hip_runtime_api.h (HIP 7)"
	libhsakmt    = "ROCm/rocm-systems projects/rocr-runtime/libhsakmt/src/queues.c (ROCm 7), for gfx9"
)

func TestTheShimsValuesAreThoseOfThePublicHeaders(t *testing.T) {
	want := []struct {
		name   string
		value  uint64
		header string
	}{
		{"sizeof(hsa_amd_queue_create_desc_t)", 96, hsaAMDHeader},
		{"offsetof(hsa_amd_queue_create_desc_t, engine_type)", 4, hsaAMDHeader},
		{"offsetof(hsa_amd_queue_create_desc_t, queue_size)", 8, hsaAMDHeader},
		{"offsetof(hsa_amd_queue_create_desc_t, priority)", 12, hsaAMDHeader},
		{"offsetof(hsa_amd_queue_create_desc_t, callback)", 16, hsaAMDHeader},
		{"offsetof(hsa_amd_queue_create_desc_t, queue)", 32, hsaAMDHeader},
		{"offsetof(hsa_amd_queue_create_desc_t, engine)", 40, hsaAMDHeader},
		{"offsetof(hsa_amd_queue_create_desc_t, traffic)", 72, hsaAMDHeader},
		{"HSA_AMD_AGENT_INFO_BDFID", 0xa006, hsaAMDHeader},
		{"HSA_AMD_AGENT_INFO_DOMAIN", 0xa00f, hsaAMDHeader},
		{"HSA_AMD_QUEUE_CREATE_DESC_VERSION", 1, hsaAMDHeader},
		{"HSA_AMD_QUEUE_ENGINE_SDMA", 1, hsaAMDHeader},
		{"HSA_AMD_QUEUE_PRIORITY_NORMAL", 1, hsaAMDHeader},
		{"HSA_AMD_QUEUE_INFO_DOORBELL_ID", 1, hsaAMDHeader},
		{"HSA_AMD_QUEUE_INFO_READ_POINTER", 15, hsaAMDHeader},
		{"HSA_AMD_QUEUE_INFO_WRITE_POINTER", 16, hsaAMDHeader},
		{"sizeof(hsa_queue_t)", 40, hsaHeader},
		{"offsetof(hsa_queue_t, base_address)", 8, hsaHeader},
		{"offsetof(hsa_queue_t, doorbell_signal)", 16, hsaHeader},
		{"offsetof(hsa_queue_t, size)", 24, hsaHeader},
		{"sizeof(hsa_agent_t)", 8, hsaHeader},
		{"HSA_AGENT_INFO_DEVICE", 17, hsaHeader},
		{"HSA_DEVICE_TYPE_GPU", 1, hsaHeader},
		{"sizeof(kfd_ioctl_get_version_args)", 8, kfdHeader},
		{"sizeof(kfd_ioctl_create_queue_args)", 96, kfdHeader},
		{"offsetof(kfd_ioctl_create_queue_args, doorbell)", 24, kfdHeader},
		{"offsetof(kfd_ioctl_create_queue_args, ring_size)", 32, kfdHeader},
		{"offsetof(kfd_ioctl_create_queue_args, queue_type)", 40, kfdHeader},
		{"offsetof(kfd_ioctl_create_queue_args, queue_id)", 52, kfdHeader},
		{"offsetof(kfd_ioctl_create_queue_args, eop_buffer)", 56, kfdHeader},
		{"offsetof(kfd_ioctl_create_queue_args, sdma_engine)", 88, kfdHeader},
		{"sizeof(kfd_ioctl_destroy_queue_args)", 8, kfdHeader},
		{"AMDKFD_IOC_GET_VERSION", 0x80084b01, kfdHeader},   // AMDKFD_IOR(0x01, …)
		{"AMDKFD_IOC_CREATE_QUEUE", 0xc0604b02, kfdHeader},  // AMDKFD_IOWR(0x02, …)
		{"AMDKFD_IOC_DESTROY_QUEUE", 0xc0084b03, kfdHeader}, // AMDKFD_IOWR(0x03, …)
		{"KFD_IOC_QUEUE_TYPE_SDMA", 1, kfdHeader},
		{"KFD_IOC_QUEUE_TYPE_SDMA_XGMI", 3, kfdHeader},
		{"KFD_IOC_QUEUE_TYPE_SDMA_BY_ENG_ID", 4, kfdHeader},
		{"KFD_MAX_QUEUE_PERCENTAGE", 100, kfdHeader},
		{"KFD interface with queues by engine id (1.x)", 17, kfdHeader},
		{"doorbells of a process", 8 * 1024, libhsakmt},
		{"hipHostMallocMapped", 0x2, hipHeader},
		{"hipHostMallocUncached", 0x10000000, hipHeader},
		{"hipHostMallocCoherent", 0x40000000, hipHeader},
		{"hipDeviceMallocFinegrained", 0x1, hipHeader},
		{"hipStreamNonBlocking", 0x1, hipHeader},
		{"hipEventDisableTiming", 0x2, hipHeader},
		{"hipMemcpyDefault", 4, hipHeader},
		{"HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK", 0, hipHeader},
		{"hipErrorOutOfMemory", 2, hipHeader},
		{"hipErrorNoDevice", 100, hipHeader},
		{"hipErrorNotReady", 600, hipHeader},
		{"hipErrorPeerAccessAlreadyEnabled", 704, hipHeader},
	}
	for _, w := range want {
		got, ok := layout[w.name]
		if !ok || got != w.value {
			t.Errorf("%s is %#x, and %#x in %s", w.name, got, w.value, w.header)
		}
	}
	if len(want) != len(layout) {
		t.Errorf("%d values are compared, and the shim has %d", len(want), len(layout))
	}
}
