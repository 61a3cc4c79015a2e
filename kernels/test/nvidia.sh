#!/bin/sh
# Checks the device kernels on an NVIDIA GPU with the CUDA toolkit: from the
# repository's root, kernels/test/nvidia.sh [work directory]. nvcc takes the
# header and the sources; the scenarios run on the embedded PTX and on nvcc's
# build; then the benchmark, and the scenarios again under compute-sanitizer.
set -eu
work=${1:-$(mktemp -d)}
flags="-std=c++17 -Xcompiler -Wall,-Wextra -arch=sm_90"
cd "$(dirname "$0")/.."

echo "== nvcc compiles the header alone"
mkdir -p "$work/alone" && cp include/sluice.h "$work/alone"
(cd "$work/alone" && nvcc $flags -x cu -c sluice.h -o sluice.o 2>&1 | tee warnings && test ! -s warnings)

echo "== nvcc compiles the kernels"
nvcc $flags -Iinclude -x cu -cubin src/builtin.cpp -o "$work/builtin.cubin"
nvcc $flags -Iinclude -x cu -cubin test/probe.cpp -o "$work/probe.cubin"
nvcc -std=c++17 -O2 -Iinclude test/driver.cpp test/scenario.cpp -lcuda -o "$work/driver"
ptxas -v -arch=sm_90 embedded/sm_90.ptx -o "$work/embedded.cubin" 2>&1 | grep -E "Compiling|registers|spill" || true

for image in embedded/sm_90.ptx embedded/sm_80.ptx "$work/builtin.cubin"; do
    echo "== scenarios: $image"
    timeout 100 "$work/driver" "$image" "$work/probe.cubin" 200
done
echo "== scenarios, memory in the host: embedded/sm_90.ptx"
timeout 100 "$work/driver" embedded/sm_90.ptx "$work/probe.cubin" 200 pinned

echo "== benchmark"
timeout 100 python3 test/bench.py embedded/sm_90.ptx 8192 30

for tool in memcheck racecheck; do
    for image in embedded/sm_90.ptx "$work/builtin.cubin"; do
        echo "== compute-sanitizer --tool $tool: $image"
        timeout 150 compute-sanitizer --tool $tool --error-exitcode 9 "$work/driver" "$image" "$work/probe.cubin" 5
    done
done
