# The device images of kernels/: built once with clang 22, committed, embedded.

CLANG      ?= clang++-22
OBJDUMP    ?= llvm-objdump-22
KERNELS    := kernels
EMBEDDED   := $(KERNELS)/embedded
REBUILT    := build/kernels
PTX_ARCHS  := sm_80 sm_90
AMD_ARCHS  := gfx90a gfx942 gfx950
KERNEL_SRC := $(wildcard $(KERNELS)/include/*.h $(KERNELS)/src/*.h $(KERNELS)/src/builtin.cpp)

KERNEL_FLAGS := -O3 -Wall -Wextra -Werror -I$(KERNELS)/include
PTX_FLAGS    := -x cuda --cuda-device-only --cuda-feature=+ptx83 -nocudainc -nocudalib -S
AMD_FLAGS    := -x hip --offload-device-only -nogpuinc -nogpulib --no-gpu-bundle-output -fuse-cuid=none

# What the proofs read: every instruction that moves data, waits or branches.
PROOF_LINES := '^[0-9a-f]+ <|	(s_waitcnt|s_barrier|s_c?branch|s_endpgm|s_trap|s_setpc|s_swappc|buffer_|global_|flat_|scratch_|ds_)'

.PHONY: kernels kernels-check kernels-rebuild

# kernels builds the images anew and puts them, with the compiler's version and
# their checksums, where they are embedded.
kernels: kernels-rebuild
	mkdir -p $(EMBEDDED)
	cp $(REBUILT)/*.ptx $(REBUILT)/*.co $(REBUILT)/manifest.txt $(EMBEDDED)/
	mkdir -p $(KERNELS)/testdata/disassembly
	cp $(REBUILT)/*.dis $(KERNELS)/testdata/disassembly/

# kernels-check rebuilds them. The compiler that built the committed ones must
# give the same bytes; another's must stand the proofs.
kernels-check: kernels-rebuild
	@built=$$(head -n 1 $(EMBEDDED)/manifest.txt); here=$$($(CLANG) --version | head -n 1); \
	if [ "$$built" = "$$here" ]; then \
	  for f in $(PTX_ARCHS:=.ptx) $(AMD_ARCHS:=.co); do \
	    cmp $(REBUILT)/$$f $(EMBEDDED)/$$f || { echo "kernels-check: $$f is not what the sources give: run 'make kernels' and commit the result"; exit 1; }; \
	  done; echo "kernels-check: the images are byte for byte what $$here gives"; \
	else echo "kernels-check: built by '$$built', rebuilt by '$$here': the rebuilt images must stand the proofs"; fi
	SLUICE_IMAGES=$(CURDIR)/$(REBUILT) go test -count=1 -run '^TestProof' ./$(KERNELS)

kernels-rebuild:
	rm -rf $(REBUILT) && mkdir -p $(REBUILT)
	for a in $(PTX_ARCHS); do $(CLANG) $(PTX_FLAGS) --cuda-gpu-arch=$$a $(KERNEL_FLAGS) $(KERNELS)/src/builtin.cpp -o $(REBUILT)/$$a.ptx || exit 1; done
	for a in $(AMD_ARCHS); do $(CLANG) $(AMD_FLAGS) --offload-arch=$$a $(KERNEL_FLAGS) $(KERNELS)/src/builtin.cpp -o $(REBUILT)/$$a.co || exit 1; \
	  $(OBJDUMP) -d $(REBUILT)/$$a.co | grep -E $(PROOF_LINES) | sed 's/  */ /g' > $(REBUILT)/$$a.dis || exit 1; done
	$(CLANG) --version | head -n 1 > $(REBUILT)/manifest.txt
	chmod 644 $(REBUILT)/*
	cd $(REBUILT) && sha256sum *.ptx *.co *.dis >> manifest.txt
