"""Times the matrix product of an embedded image beside torch.matmul.

    python3 kernels/test/bench.py kernels/embedded/sm_90.ptx [size] [repeats]

Prints medians over interleaved repeats: torch.matmul, the product without
marks, the product with a mark for every tile. Data is random; every mark's
round is new; the results are compared.
"""

import ctypes
import statistics
import sys

import torch

TILE, CTAS_PER_SM, THREADS = 128, 2, 128
HANDLE_ROUND, HANDLE_CHUNK_WORDS, GATE_WORDS = 3, 11, 8

cuda = ctypes.CDLL("libcuda.so.1")


def check(result, what):
    if result:
        raise RuntimeError(f"{what} failed with CUresult {result}")


def load(path, name):
    with open(path, "rb") as f:
        image = f.read() + b"\0"
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    check(cuda.cuModuleLoadData(ctypes.byref(module), image), "cuModuleLoadData")
    check(cuda.cuModuleGetFunction(ctypes.byref(function), module, name.encode()), "cuModuleGetFunction")
    return function


def launch(function, blocks, *args):
    words = [ctypes.c_uint64(a) for a in args]
    pointers = (ctypes.c_void_p * len(words))(*[ctypes.addressof(w) for w in words])
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    check(cuda.cuLaunchKernel(function, blocks, 1, 1, THREADS, 1, 1, 0, stream, pointers, None), "cuLaunchKernel")


class Plan:
    """A handle, gates and fault row for one rank, one chunk a tile."""

    def __init__(self, chunks, steps_per_chunk):
        self.gates = torch.zeros(chunks * GATE_WORDS, dtype=torch.int64, device="cuda")
        self.faults = torch.zeros(8, dtype=torch.int64, device="cuda")
        self.tables = torch.tensor([self.gates.data_ptr()], dtype=torch.int64, device="cuda")
        head = [1, chunks, 0, 0, self.gates.data_ptr(), 1, 0, chunks, self.tables.data_ptr(), self.faults.data_ptr(), 0]
        self.handle = torch.tensor(head + [steps_per_chunk, 0] * chunks, dtype=torch.int64, device="cuda")
        self.chunks = chunks

    def next_round(self):
        self.handle[HANDLE_ROUND] += 1

    def verify(self):
        rounds = int(self.handle[HANDLE_ROUND])
        rows = self.gates.view(self.chunks, GATE_WORDS)
        assert bool((rows[:, 0] == rounds).all()), "a gate is not open"
        assert int(self.faults.abs().sum()) == 0, "marks were foreign or too many"


def main():
    path = sys.argv[1]
    size = int(sys.argv[2]) if len(sys.argv) > 2 else 8192
    repeats = int(sys.argv[3]) if len(sys.argv) > 3 else 30
    torch.cuda.init()
    a = torch.randn(size, size, device="cuda").bfloat16()
    b = torch.randn(size, size, device="cuda").bfloat16()
    out = torch.full_like(a, float("nan"))
    matmul = load(path, "matmul")
    tiles = (size // TILE) ** 2
    plan = Plan(tiles, 1)
    blocks = CTAS_PER_SM * torch.cuda.get_device_properties(0).multi_processor_count

    def product(handle):
        launch(matmul, blocks, handle, out.data_ptr(), 0, 2 * size, a.data_ptr(), b.data_ptr(), size, size, size, 1, 8)

    forms = {
        "torch.matmul": lambda: torch.matmul(a, b),
        "product": lambda: product(0),
        "product, a mark a tile": lambda: product(plan.handle.data_ptr()),
    }
    times = {name: [] for name in forms}
    for repeat in range(repeats + 3):
        for name, form in forms.items():
            if "mark" in name:
                plan.next_round()
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            form()
            end.record()
            end.synchronize()
            if repeat >= 3:
                times[name].append(begin.elapsed_time(end))
    assert bool(torch.isfinite(out).all()), "the product left elements unwritten"
    rows = torch.randint(size, (64,), device="cuda")
    want = a[rows].double() @ b.double()
    error = float((out[rows].double() - want).norm() / want.norm())
    assert error < 1e-2, f"relative error {error}"
    plan.verify()

    print(f"{torch.cuda.get_device_name(0)}, bf16 {size} x {size} x {size}, {repeats} repeats")
    print(f"  error of 64 rows against float64: {error:.1e}")
    median = {name: statistics.median(t) for name, t in times.items()}
    for name, ms in median.items():
        tenths = statistics.quantiles(times[name], n=10)
        rate = 2e-9 * size**3 / ms
        print(f"  {name:24} {ms:7.3f} ms (p10 {tenths[0]:.3f}, p90 {tenths[-1]:.3f})  {rate:6.1f} TFLOP/s")
    reference, plain, marked = median.values()
    print(f"  of torch's speed, with marks on: {reference / marked:.3f}")
    print(f"  what marks cost: {100 * (marked / plain - 1):.2f} %", flush=True)


if __name__ == "__main__":
    main()
