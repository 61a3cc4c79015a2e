# The tests of several GPUs, built here for a machine that has them.

PEERS := build/peers

.PHONY: peer-tests

# peer-tests puts test binaries, the examples, the sources of two programs
# that do without Sluice, and a runner into $(PEERS). Copy the folder to the machine
# and start run.sh there.
peer-tests: compiler
	rm -rf $(PEERS) && mkdir -p $(PEERS)
	for p in rank plan; do \
	  mkdir -p $(PEERS)/$$p && CGO_ENABLED=1 $(GO) test -c -ldflags='-s -w' -o $(PEERS)/$$p/$$p.test ./$$p || exit 1; \
	  if [ -d $$p/testdata ]; then cp -r $$p/testdata $(PEERS)/$$p/; fi; \
	done
	CGO_ENABLED=1 $(GO) test -c -ldflags='-s -w' -o $(PEERS)/peers.test ./gpu/peers
	for e in $(GPU_EXAMPLES); do CGO_ENABLED=1 $(GO) build -ldflags='-s -w' -o $(PEERS)/$$e ./examples/$$e || exit 1; done
	cp kernels/embedded/sm_90.ptx $(PEERS)/kernels.ptx
	cp gpu/peers/device/* $(PEERS)/
	du -sh $(PEERS)
