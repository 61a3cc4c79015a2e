# The kernels in Triton and Gluon: compiled once with Triton 3.6, committed.

PYTHON        ?= python3
TRITON_KERNEL := kernels/python

.PHONY: triton triton-texts

# triton compiles them anew, and with a view whose barrier is taken out, for the
# proofs to refuse. It needs Triton, and no GPU.
triton:
	$(PYTHON) $(TRITON_KERNEL)/build.py --out $(TRITON_KERNEL)/built
	rm -rf build/nobarrier && mkdir -p build/nobarrier
	cp -r $(TRITON_KERNEL)/sluice_view build/nobarrier/
	sed -i 's/^    tl\.debug_barrier()$$/    pass/' build/nobarrier/sluice_view/triton_view.py
	sed -i 's/^    barrier()$$/    pass/' build/nobarrier/sluice_view/gluon_view.py
	$(PYTHON) $(TRITON_KERNEL)/build.py --out build/nobarrier/built --view build/nobarrier --kernel gemm --kernel gluon_gemm
	$(MAKE) triton-texts

# triton-texts disassembles AMD's binaries for proofs where there is no
# disassembler.
triton-texts:
	for f in $(TRITON_KERNEL)/built/*.hsaco; do \
	  $(OBJDUMP) -d $$f | grep -E $(PROOF_LINES) | sed 's/  */ /g' > $(TRITON_KERNEL)/testdata/disassembly/$$(basename $$f .hsaco).dis || exit 1; done
	if [ -d build/nobarrier/built ]; then \
	  cp build/nobarrier/built/*.ptx $(TRITON_KERNEL)/testdata/nobarrier/ && \
	  for f in build/nobarrier/built/*.hsaco; do \
	    $(OBJDUMP) -d $$f | grep -E $(PROOF_LINES) | sed 's/  */ /g' > $(TRITON_KERNEL)/testdata/nobarrier/$$(basename $$f .hsaco).dis || exit 1; done; fi
