# The benchmark suite. See docs/benchmarks.md.
#
#   make bench                          a table, within five minutes
#   make bench SCOPE=full JSON=1        every case, one object a line
#   make bench RUN='rounds|trigger'     some figures
#   make bench-compare OLD=a NEW=b      two files that JSON=1 wrote, side by side
#   make bench-growth NEW=b             docs/growth.svg from such a file

SCOPE     ?= usual
RUN       ?=
JSON      ?=
REPEATS   ?= 0
BUILT     := build/bench
# The newest that Go 1.25 builds.
BENCHSTAT := golang.org/x/perf/cmd/benchstat@v0.0.0-20250813145418-2f7363a06fe1

.PHONY: bench bench-build bench-compare bench-growth

# What is built prints nothing on standard output, so that JSON=1 gives objects
# and nothing else: make -s bench JSON=1 > new.json
bench: bench-build
	@$(BUILT)/bench -scope $(SCOPE) -repeats $(REPEATS) -run '$(RUN)' $(if $(JSON),-json) \
	  $$(test -x $(BUILT)/allgather && echo -allgather $(BUILT)/allgather)

# OpenMPI is measured where it is installed: openmpi-bin and libopenmpi-dev.
bench-build:
	@mkdir -p $(BUILT)
	@$(GO) build -o $(BUILT)/bench ./bench
	@if command -v mpicc > /dev/null; then mpicc -O2 -o $(BUILT)/allgather bench/mpi/allgather.c; \
	else rm -f $(BUILT)/allgather; echo "bench: no mpicc here: OpenMPI is left out; install openmpi-bin and libopenmpi-dev" >&2; fi

bench-compare: bench-build
	@test -n "$(OLD)" -a -n "$(NEW)" || { echo "make bench-compare OLD=old.json NEW=new.json: two files that 'make -s bench JSON=1' wrote" >&2; exit 2; }
	@$(BUILT)/bench -benchstat $(OLD) > $(BUILT)/old.txt
	@$(BUILT)/bench -benchstat $(NEW) > $(BUILT)/new.txt
	@$(GO) run $(BENCHSTAT) old=$(BUILT)/old.txt new=$(BUILT)/new.txt

bench-growth: bench-build
	@test -n "$(NEW)" || { echo "make bench-growth NEW=new.json: a file that 'make -s bench JSON=1' wrote" >&2; exit 2; }
	@$(BUILT)/bench -plot docs/growth.svg $(NEW)
