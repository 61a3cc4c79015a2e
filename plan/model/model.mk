# The model of the protocol. See docs/model.md.

.PHONY: model

# model explores every state of the true protocol in several sizes, and looks
# for a counterexample to each mutation. Every test run does so in one size.
model: export SLUICE_MODEL := thorough
model: compiler
	@command -v spin > /dev/null || { echo "make: model needs spin: apt-get install spin"; exit 1; }
	$(GO) test -count=1 -v -timeout 5m -run . $(FLAGS) ./plan/model
