# The nvidia platform's tests: built here for a machine with a GPU and no Go,
# and run here against a stand-in for the driver.

GPU          := build/gpu
GPU_PACKAGES := hip copyengine rank plan gpu
GPU_EXAMPLES := all_gather broadcast put_quiet

.PHONY: gpu-tests fake-gpu-tests

# gpu-tests puts test binaries, their data, the examples and a runner into
# $(GPU). Copy the folder to the GPU machine (Linux on amd64, a driver of CUDA
# 12.8 or later) and start run.sh there.
gpu-tests: compiler
	rm -rf $(GPU) && mkdir -p $(GPU)
	for p in $(GPU_PACKAGES); do \
	  mkdir -p $(GPU)/$$p && CGO_ENABLED=1 $(GO) test -c -ldflags='-s -w' -o $(GPU)/$$p/$$p.test ./$$p || exit 1; \
	  if [ -d $$p/testdata ]; then cp -r $$p/testdata $(GPU)/$$p/; fi; \
	done
	for e in $(GPU_EXAMPLES); do CGO_ENABLED=1 $(GO) build -ldflags='-s -w' -o $(GPU)/$$e ./examples/$$e || exit 1; done
	mkdir -p $(GPU)/kernels/embedded && cp kernels/embedded/sm_90.ptx $(GPU)/kernels/embedded/
	cp gpu/device/run.sh gpu/device/layout.c gpu/device/waits.c gpu/device/holds.c hip/cuda_shim.h $(GPU)/
	du -sh $(GPU)

# fake-gpu-tests runs the same tests on the stand-in. They share one device, so
# they run one after the other.
fake-gpu-tests: compiler
	lib=$$($(GO) run ./internal/fakecuda/cmd/fakecuda) && \
	SLUICE_PLATFORM=nvidia SLUICE_LIBCUDA=$$lib $(GO) test -p 1 -parallel 1 -timeout $(TIMEOUT) $(FLAGS) $(GPU_PACKAGES:%=./%)
