# The AMD platform over the emulated ROCm. Nothing here needs a GPU.

EMULATED := internal/fakerocm
AMD_WAYS := hsa kfd
AMD_DEVICES := 2 4 8
AMD_TESTS ?= ./plan ./rank
AMD_RUNS := all_gather broadcast put_quiet sdma_probe

.PHONY: amd-tests amd-check

# amd-tests runs, from the same source as for the host, the tests of plans and
# ranks and the examples on 2, 4 and 8 emulated devices, for both ways of making
# queues.
# Under the race detector it sees the Go side: C memory it cannot watch.
amd-tests: amd-check
	@set -e; for n in $(AMD_DEVICES); do for way in $(AMD_WAYS); do \
	  echo "amd-tests: $$n devices, queues by $$way"; \
	  eval "$$($(GO) run ./$(EMULATED)/env -devices $$n -way $$way)"; \
	  SLUICE_PLATFORM=amd $(GO) test -count=1 -timeout $(TIMEOUT) $(AMD_TESTS); \
	  for e in $(AMD_RUNS); do $(GO) run ./examples/$$e -platform amd -ranks $$n -json; done; \
	done; done
	eval "$$($(GO) run ./$(EMULATED)/env -devices 4)" && SLUICE_PLATFORM=amd $(GO) test -race -timeout $(TIMEOUT) ./plan ./rank

# amd-check has the address, leak and undefined-behaviour sanitizers watch the C
# code of both sides, the shim and the emulated ROCm. (The thread sanitizer knows
# neither fences nor the doorbell's plain store.)
amd-check:
	@set -e; dir=$$(mktemp -d); trap 'rm -rf '$$dir EXIT; \
	flags="-g -O1 -fno-omit-frame-pointer -pthread -fsanitize=address,undefined -fno-sanitize-recover"; \
	for way in $(AMD_WAYS); do \
	  old=; if [ $$way = kfd ]; then old=-DFAKEROCM_OLD; fi; \
	  (cd $$dir && $(CC) -std=gnu11 $$flags $$old -fPIC -fvisibility=hidden -I$(CURDIR)/kernels/src -c $(CURDIR)/$(EMULATED)/lib/*.c); \
	  (cd $$dir && $(CXX) -std=c++17 $$flags -fPIC -fvisibility=hidden -I$(CURDIR)/kernels/include -c $(CURDIR)/kernels/src/host.cpp); \
	  $(CXX) $$flags -shared -o $$dir/lib.so $$dir/*.o; rm $$dir/*.o; \
	  $(CC) -std=gnu11 $$flags -Ihip/internal/rocm -o $$dir/check $(EMULATED)/check/check.c hip/internal/rocm/*.c -ldl; \
	  $$dir/check $$dir/lib.so kernels/embedded/gfx942.co 3; \
	done
