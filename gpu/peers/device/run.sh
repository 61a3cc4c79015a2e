#!/usr/bin/env bash
# Runs what `make peer-tests` built, on a machine with several NVIDIA GPUs. Every
# step is bounded and its result printed at once.
#   run.sh [STEP ...]: links pairs rounds figures nccl overlap ways examples shared
# DEST is a folder for the logs, BUDGET the seconds for everything.
cd "$(dirname "$0")" || exit 1
export SLUICE_PLATFORM=nvidia SLUICE_LIBCUDA=${SLUICE_LIBCUDA:-libcuda.so.1}
cuda=${CUDA_HOME:-/usr/local/cuda}
dest=${DEST:-.}
end=${BUDGET:-600}
failed=0

step() { # log, name, seconds, command
  local log=$dest/$1.log name=$2 limit=$3 left start rc
  shift 3
  left=$((end - SECONDS - 1))
  [ "$left" -lt 3 ] && { echo "SKIPPED $name (no time)"; return; }
  [ "$limit" -gt "$left" ] && limit=$left
  start=$(date +%s%N)
  { echo "=== $name: $*"; timeout --kill-after=3 "$limit" "$@"; } >> "$log" 2>&1
  rc=$?
  echo "=== rc $rc" >> "$log"
  [ $rc = 0 ] || failed=1
  echo "$name: rc $rc, $((($(date +%s%N) - start) / 1000000)) ms"
}

tests() { # log, seconds, package, pattern
  step "$1" "$3 $4" "$2" bash -c 'cd "$0" && exec "./$1.test" -test.parallel 1 -test.v -test.timeout "$2s" -test.run "$3"' \
    "$([ -d "$3" ] && echo "$3" || echo .)" "$3" "$2" "$4"
}

nccl_path() { python3 -c 'import nvidia.nccl; print(list(nvidia.nccl.__path__)[0])'; }

links() { step main "links" 10 nvidia-smi topo -m; }
pairs() { tests main 30 peers '^Test[^F]'; }
figures() { tests figures 60 peers 'FigureTrigger|FigureAllGather'; }
rounds() { step main "all_gather, 10000 rounds" 60 ./all_gather -platform nvidia -ranks "$gpus" -rounds 10000 -rows 64 -cols 256 -tile 32x64; }
nccl() {
  local nccl
  nccl=$(nccl_path)
  step nccl "gathers is built" 30 gcc -O2 -pthread -I"$cuda/include" -I"$nccl/include" gathers.c -o gathers \
    -L"$cuda/lib64/stubs" -lcuda "$nccl/lib/libnccl.so.2" "-Wl,-rpath,$nccl/lib"
  step nccl "gathers, rate" 60 ./gathers kernels.ptx loop,nccl,zero rate beside
}
overlap() {
  tests figures 60 peers FigureOverlap
  step nccl "gathers, overlap" 60 ./gathers kernels.ptx loop,nccl,zero overlap
}
ways() {
  step ways "copies is built" 30 gcc -O2 -pthread -I"$cuda/include" copies.c -o copies -L"$cuda/lib64/stubs" -lcuda
  step ways "copies" 30 ./copies 65536 12 262144 4 4096 48
}
examples() {
  local e n shape
  for n in "$gpus" $((2 * gpus)); do
    for e in all_gather broadcast put_quiet; do
      shape="-rows 256 -cols 512 -tile 64x64"
      [ $e = put_quiet ] && shape="-rows 64 -cols 256"
      step main "$e, $n ranks" 30 ./$e -platform nvidia -ranks "$n" -rounds 500 $shape
    done
  done
}
shared() { for p in rank plan; do tests main 120 $p .; done; }

nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
gpus=$(nvidia-smi -L | wc -l)
[ -n "$CUDA_VISIBLE_DEVICES" ] && gpus=$(tr , '\n' <<< "$CUDA_VISIBLE_DEVICES" | wc -l)
for s in "${@:-links pairs rounds figures nccl overlap ways examples shared}"; do for t in $s; do $t; done; done
exit $failed
