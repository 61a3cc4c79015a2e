# The AMD platform over the emulated ROCm. Nothing here needs a GPU.

EMULATED := internal/fakerocm
AMD_WAYS := hsa kfd
AMD_DEVICES := 2 4 8
AMD_PACKAGES := ./hip ./copyengine ./rank ./plan
# gemm_all_gather is not among them: on GPUs it runs device code.
AMD_EXAMPLES := all_gather broadcast put_quiet sdma_probe

.PHONY: amd-tests amd-matrix amd-check amd-leaks

# amd_on runs a command with $(1) emulated devices, queues made by $(2).
amd_on = echo "amd: $(1) devices, queues by $(2)"; on=$$($(GO) run ./$(EMULATED)/env -devices $(1) -way $(2)) || exit 1; eval "$$on"

# amd-tests is what CI runs: every test of the packages that meet the platform,
# from the same source as for the host, on 4 devices under the race detector,
# those of ranks and plans on 2 and 8 and for both ways of making queues, and the
# examples on 8. The race detector sees Go's memory; amd-check watches C's.
amd-tests: compiler amd-check
	@$(call amd_on,4,hsa); $(GO) test -race -count=1 -timeout $(TIMEOUT) $(AMD_PACKAGES) $(AMD_EXAMPLES:%=./examples/%)
	@set -e; for case in "2 hsa" "2 kfd" "4 kfd" "8 hsa" "8 kfd"; do set -- $$case; \
	  $(call amd_on,$$1,$$2); $(GO) test -count=1 -timeout $(TIMEOUT) ./rank ./plan; done
	@set -e; $(call amd_on,8,kfd); for e in $(AMD_EXAMPLES); do \
	  $(GO) run ./examples/$$e -ranks 8 > /dev/null; echo "$$e: every byte is right"; done

# amd-matrix runs all of the packages' tests for every number of devices and
# both ways, with the race detector and without: half an hour.
amd-matrix: compiler amd-check
	@set -e; for n in $(AMD_DEVICES); do for way in $(AMD_WAYS); do for race in "" -race; do \
	  $(call amd_on,$$n,$$way); $(GO) test $$race -count=1 -timeout $(TIMEOUT) $(FLAGS) $(AMD_PACKAGES) ./examples/...; \
	done; done; done

# amd-check has the address, leak and undefined-behaviour sanitizers watch the C
# code of both sides, the shim and the emulated ROCm. (The thread sanitizer knows
# neither fences nor the doorbell's plain store.)
amd-check:
	@set -e; dir=$$(mktemp -d); trap 'rm -rf '$$dir EXIT; \
	flags="-Wall -Wextra -Werror -g -O1 -fno-omit-frame-pointer -pthread -fsanitize=address,undefined -fno-sanitize-recover"; \
	for way in $(AMD_WAYS); do \
	  old=; if [ $$way = kfd ]; then old=-DFAKEROCM_OLD; fi; \
	  (cd $$dir && $(CC) -std=gnu11 $$flags $$old -fPIC -fvisibility=hidden -I$(CURDIR)/kernels/src -c $(CURDIR)/$(EMULATED)/lib/*.c); \
	  (cd $$dir && $(CXX) -std=c++17 $$flags -fPIC -fvisibility=hidden -I$(CURDIR)/kernels/include -c $(CURDIR)/kernels/src/host.cpp); \
	  $(CXX) $$flags -shared -o $$dir/lib.so $$dir/*.o; rm $$dir/*.o; \
	  $(CC) -std=gnu11 $$flags -Ihip/internal/rocm -o $$dir/check $(EMULATED)/check/check.c hip/internal/rocm/*.c -ldl; \
	  $$dir/check $$dir/lib.so kernels/embedded/gfx942.co 3; \
	done

# amd-leaks runs examples with Go and C under the address sanitizer, which looks
# for leaks when they end (from Go 1.26 on). The first time it builds Go's
# library anew, which takes minutes.
amd-leaks: compiler
	@set -e; dir=$$(mktemp -d); trap 'rm -rf '$$dir EXIT; export FAKEROCM_FLAGS=-fsanitize=address; \
	for e in $(AMD_EXAMPLES); do $(GO) build -asan -o $$dir/$$e ./examples/$$e; done; \
	for way in $(AMD_WAYS); do $(call amd_on,4,$$way); for e in $(AMD_EXAMPLES); do \
	  $$dir/$$e -ranks 4 -rounds 3 > /dev/null; echo "$$e: no leak and no wrong access"; done; done
