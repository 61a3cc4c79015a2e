# Long runs: random worlds, the plans' model, and fuzzing. A seed makes a run
# start where another did; 0 takes the time.

SOAK ?= 10m
SEED ?= 0
FUZZ ?= 60s

.PHONY: soak torture fuzz cgocheck

# soak runs random worlds, plans, sizes, orders and faults.
soak:
	$(GO) run ./internal/soak -for $(SOAK) -seed $(SEED)

# torture compares random scenarios with the plans' model, as 'make test' does
# for a shorter time.
torture: export SLUICE_TORTURE ?= 5m
torture: export SLUICE_SEED ?= 1
torture: compiler
	CGO_ENABLED=1 $(GO) test -race -count=1 -v -timeout 0 -run '^TestPlansDoWhatTheirModelSays$$' ./plan

test: export SLUICE_TORTURE ?= 20s

# fuzz runs every fuzz test for so long. What it finds is kept under
# testdata/fuzz of the package, and from then on every test run tries it.
fuzz:
	@set -e; for f in $$(grep -rl --include='*_test.go' '^func Fuzz' .); do \
	  for name in $$(sed -n 's/^func \(Fuzz[A-Za-z]*\).*/\1/p' $$f); do \
	    echo "$$(dirname $$f) $$name"; \
	    $(GO) test -run '^$$' -fuzz "^$$name$$" -fuzztime $(FUZZ) $$(dirname $$f); \
	  done; done

# cgocheck runs what calls C under the runtime's strictest checks of the pointers
# that are handed over, on the host and over the emulated ROCm.
cgocheck: export GODEBUG := cgocheck=1
cgocheck: export GOEXPERIMENT := cgocheck2
cgocheck: compiler
	CGO_ENABLED=1 $(GO) test -count=1 -timeout $(TIMEOUT) $(FLAGS) ./hip/... ./heap ./copyengine/... ./rank ./plan ./internal/fakerocm
	eval "$$($(GO) run ./internal/fakerocm/env -devices 4)" && \
	SLUICE_PLATFORM=amd CGO_ENABLED=1 $(GO) test -count=1 -timeout $(TIMEOUT) $(FLAGS) ./rank ./plan
