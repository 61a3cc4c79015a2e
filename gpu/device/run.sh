#!/usr/bin/env bash
# Runs what `make gpu-tests` built, on a machine with an NVIDIA GPU. Every step
# is bounded and its result printed at once.
#   run.sh [STEP ...]: layout waits holds hang shared examples figures soak sanitizer
# SOAK is the time for random plans, in seconds.
cd "$(dirname "$0")" || exit 1
export SLUICE_PLATFORM=nvidia SLUICE_LIBCUDA=${SLUICE_LIBCUDA:-libcuda.so.1}
cuda=${CUDA_HOME:-/usr/local/cuda}
failed=()

step() { # name, seconds, command
  local name=$1 limit=$2 out rc start
  shift 2
  start=$(date +%s%N)
  out=$(timeout --kill-after=5 "$limit" "$@" 2>&1)
  rc=$?
  printf '%s %-50s %6d ms\n' "$([ $rc = 0 ] && echo ok || echo "FAILED($rc)")" "$name" $((($(date +%s%N) - start) / 1000000))
  if [ $rc != 0 ]; then
    failed+=("$name")
    echo "$out" | grep -v '^goroutine\|^	/' | tail -n 30 | cut -c1-400 | sed 's/^/    /'
  elif [ -n "$SHOW" ]; then
    echo "$out" | grep -E "$SHOW" | cut -c1-400 | sed 's/^/    /'
  fi
}

# tests is what runs a package's tests: package, seconds, pattern.
tests='cd "$0" && exec "./$0.test" -test.parallel 1 -test.v -test.timeout "$1s" -test.run "$2"'

layout() { step "types are those of cuda.h" 20 gcc -I"$cuda/include" -I. -c layout.c -o /tmp/layout.o; }
waits() {
  step "waits is built" 20 gcc -O2 -I"$cuda/include" waits.c -o /tmp/waits -L"$cuda/lib64/stubs" -lcuda -lpthread
  SHOW=. step "calls behind a waiting stream" 60 /tmp/waits kernels/embedded/sm_90.ptx
}
holds() {
  step "holds is built" 20 gcc -O2 -I"$cuda/include" holds.c -o /tmp/holds -L"$cuda/lib64/stubs" -lcuda -lpthread
  SHOW=. step "what a stream holds behind a closed gate" 60 /tmp/holds
}
hang() { SHOW='^(---|    ---)' step "hangs that are provoked" 120 bash -c "$tests" gpu 110 '^Test[^F]'; }
shared() {
  for p in copyengine hip rank plan; do [ -x $p/$p.test ] || continue; SHOW='SKIP|^ok|^PASS' step "shared tests of $p" 240 bash -c "$tests" $p 230 .; done
}
examples() {
  for n in 2 4; do
    for e in all_gather broadcast put_quiet; do
      [ -x ./$e ] && SHOW='verified|time per|GB' step "$e, $n ranks, 1000 rounds" 120 ./$e -platform nvidia -ranks $n -rounds 1000
    done
  done
  for p in builtin triton gluon; do
    SHOW='verified|time per|float64' step "gemm_all_gather, $p, 200 rounds" 120 ./gemm_all_gather -platform nvidia -ranks 2 -rounds 200 -producer $p
  done
}
figures() { SHOW='test.go' step "figures" 120 bash -c "$tests" gpu 110 Figure; }
soak() { SHOW='worlds|PASS' step "random plans" $((${SOAK:-60} + 30)) env SLUICE_TORTURE=${SOAK:-60}s ./plan/plan.test -test.parallel 1 -test.v -test.run TestPlansDoWhatTheirModelSays; }
# memcheck refuses additions at system scope in pinned memory, so it runs where
# all counters lie in the device's.
sanitizer() {
  local small=(-platform nvidia -ranks 2 -rounds 3 -rows 128 -cols 128 -tile 32x32 -programs 2)
  SHOW='ERROR SUMMARY|^---' step "compute-sanitizer memcheck" 90 bash -c 'cd gpu && exec compute-sanitizer --error-exitcode 9 ./gpu.test -test.v -test.run "RoundsOfOneProducer|OfTwoHeaps"'
  SHOW='ERROR SUMMARY|verified' step "compute-sanitizer synccheck" 60 compute-sanitizer --tool synccheck --error-exitcode 9 ./all_gather "${small[@]}"
  SHOW='SUMMARY|verified' step "compute-sanitizer racecheck" 60 compute-sanitizer --tool racecheck --error-exitcode 9 ./all_gather "${small[@]}"
}

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
for s in "${@:-layout waits holds hang shared examples figures soak sanitizer}"; do for t in $s; do $t; done; done
if [ ${#failed[@]} -gt 0 ]; then
  printf 'failed: %s\n' "${failed[@]}"
  exit 1
fi
