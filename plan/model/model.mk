# The model of the protocol. See docs/model.md.

MUTATION ?=

.PHONY: model

# model explores every state of the true protocol in several sizes, and looks
# for a counterexample to each mutation. Every test run does so in one size.
# With MUTATION it takes the protocol that drops this rule for the true one, and
# fails with a counterexample.
model: export SLUICE_MODEL := thorough
model: export SLUICE_MUTATION := $(MUTATION)
model: compiler
	@command -v spin > /dev/null || { echo "make: model needs spin: apt-get install spin"; exit 1; }
	$(GO) test -count=1 -v -timeout 10m $(if $(MUTATION),-run '^TestEveryReachableState') $(FLAGS) ./plan/model
