"""Checks what build.py built on an NVIDIA GPU, and times it.

    python3 kernels/python/check.py kernels/python/built [--kernel gemm] [--size 8192] [--repeats 20]

The product must be right, marks must open every gate once, marks that are
foreign or too many must be counted, and the consumer must wait. Then a round of
the product with its marks is timed beside torch.matmul, in turn, on random data.
Several folders may be given; each makes a line.
"""

import argparse
import ctypes
import json
import pathlib
import statistics
import sys
import time
import traceback

import torch

cuda = ctypes.CDLL("libcuda.so.1")
VERSION, ROUND_WORD, GATE_WORDS, SHARED_ATTRIBUTE = 1, 3, 8, 8


def succeed(result, what):
    if result:
        raise RuntimeError(f"{what} failed with CUresult {result}")


class Kernel:
    """A kernel as its JSON describes it, loaded as Go does."""

    def __init__(self, folder, name):
        self.described = json.loads((folder / f"{name}.sm_90.json").read_text())
        image = (folder / self.described["binary"]["file"]).read_bytes() + b"\0"
        module, self.function = ctypes.c_void_p(), ctypes.c_void_p()
        succeed(cuda.cuModuleLoadData(ctypes.byref(module), image), "cuModuleLoadData")
        succeed(cuda.cuModuleGetFunction(ctypes.byref(self.function), module, self.described["entry"].encode()),
                "cuModuleGetFunction")
        self.threads = self.described["warps"] * self.described["warp_size"]
        self.shared = self.described["shared"]
        succeed(cuda.cuFuncSetAttribute(self.function, SHARED_ATTRIBUTE, self.shared), "cuFuncSetAttribute")
        self.constants = self.described["constants"]

    def fits(self):
        """How many programs the device runs at once."""
        each = ctypes.c_int()
        succeed(cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(ctypes.byref(each), self.function, self.threads,
                                                                 ctypes.c_size_t(self.shared)), "cuOccupancy")
        return each.value * torch.cuda.get_device_properties(0).multi_processor_count

    def launch(self, programs, *values):
        described = self.described
        words = []
        for argument, value in zip(described["arguments"], values, strict=True):
            value = value.data_ptr() if isinstance(value, torch.Tensor) else value
            words.append((ctypes.c_int32 if argument["type"] == "i32" else ctypes.c_uint64)(value))
        scratch = described["scratch"]["bytes"] * programs
        self.scratch = torch.empty(max(scratch, 1), dtype=torch.uint8, device="cuda")
        for hidden in described["hidden"]:
            words.append(ctypes.c_uint64(self.scratch.data_ptr() if hidden == "global_scratch" and scratch else 0))
        pointers = (ctypes.c_void_p * len(words))(*[ctypes.addressof(w) for w in words])
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        succeed(cuda.cuLaunchKernel(self.function, programs, 1, 1, self.threads, 1, 1, self.shared, stream, pointers,
                                    None), "cuLaunchKernel")


class Plan:
    """A handle, a gate table and a fault row. The first `own` chunks are the
    rank's own, the others are a peer's."""

    def __init__(self, writers, own):
        self.gates = torch.zeros(len(writers), GATE_WORDS, dtype=torch.int64, device="cuda")
        self.faults = torch.zeros(8, dtype=torch.int64, device="cuda")
        self.tables = torch.tensor([self.gates.data_ptr()], dtype=torch.int64, device="cuda")
        words = [VERSION, len(writers), 0, 0, self.gates.data_ptr(), 1, 0, own, self.tables.data_ptr(),
                 self.faults.data_ptr(), 0]
        for count in writers:
            words += [count, 0]
        self.handle = torch.tensor(words, dtype=torch.int64, device="cuda")

    def next_round(self):
        self.handle[ROUND_WORD] += 1


def chunk_writers(tiles, steps):
    return [min(steps, tiles - at) for at in range(0, tiles, steps)]


class Product:
    """The shapes and the data of one product, and a plan for it."""

    def __init__(self, kernel, m, n, k, programs):
        self.kernel, self.programs, self.shape = kernel, programs, (m, n, k)
        self.a = torch.randn(m, k, device="cuda").bfloat16()
        self.b = torch.randn(k, n, device="cuda").bfloat16()
        self.out = torch.full((m, n), float("nan"), dtype=torch.bfloat16, device="cuda")
        block_m, block_n = kernel.constants["BLOCK_M"], kernel.constants["BLOCK_N"]
        self.tiles = -(-m // block_m) * -(-n // block_n)
        self.writers = chunk_writers(self.tiles, programs)

    def run(self, plan):
        self.kernel.launch(self.programs, plan.handle, self.out, self.a, self.b, *self.shape, self.programs)

    def error(self):
        rows = torch.randint(self.shape[0], (64,), device="cuda")
        want = self.a[rows].double() @ self.b.double()
        return float((self.out[rows].double() - want).norm() / want.norm())


def check(folder, name):
    """The rules, on a small product whose edge tiles are clipped."""
    kernel = Kernel(folder, name)
    product = Product(kernel, 1000, 1040, 528, 16)
    plan = Plan(product.writers, len(product.writers))
    for _ in range(5):
        plan.next_round()
        product.a.normal_()
        product.run(plan)
        error = product.error()
        assert error < 1e-2, f"the product is off by {error}"
    rounds = int(plan.handle[ROUND_WORD])
    assert bool((plan.gates[:, 0] == rounds).all()), f"gates are at {plan.gates[:, 0].tolist()}, want {rounds}"
    assert plan.gates[:, 2].tolist() == [rounds * w for w in product.writers], "marks were lost"
    assert int(plan.faults.abs().sum()) == 0, "marks were foreign or too many"

    foreign = Plan(product.writers, 0)
    foreign.next_round()
    product.run(foreign)
    assert int(foreign.faults[0]) == product.tiles, f"{int(foreign.faults[0])} foreign marks, want {product.tiles}"
    assert int(foreign.gates.sum()) == 0, "a foreign mark opened a gate"
    extra = Plan([w - 1 for w in product.writers], len(product.writers))
    extra.next_round()
    product.run(extra)
    found = int(extra.faults[2])
    assert found == len(product.writers), f"{found} extra marks, want {len(product.writers)}"

    consumer = Kernel(folder, "consume")
    peer = Plan(product.writers, 0)
    peer.next_round()
    sums = torch.full((len(product.writers),), -1, dtype=torch.int64, device="cuda")
    m, n, _ = product.shape
    arrivals = torch.zeros_like(peer.gates)
    arrivals[:, 1] = 1
    waiting, opener = torch.cuda.Stream(), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(waiting):
        consumer.launch(4, peer.handle, product.out, sums, m, n, kernel.constants["BLOCK_M"],
                        kernel.constants["BLOCK_N"], product.programs)
    with torch.cuda.stream(opener):
        assert not waiting.query(), "the consumer did not wait"
        peer.gates.copy_(arrivals, non_blocking=True)  # a copy loads no code, which would wait for the consumer
    waiting.synchronize()
    whole = int((product.out.view(torch.int16).long() & 0xFFFF).sum())
    found = int(sums.sum())
    assert found == whole and int(sums.min()) >= 0, f"the consumer's sums make {found}, want {whole}"


def timed(form):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    begin.record()
    form()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)


def bench(folder, name, size, repeats):
    """Medians of torch.matmul and of the product with its marks, in turn."""
    kernel = Kernel(folder, name)
    product = Product(kernel, size, size, size, kernel.fits())
    plan = Plan(product.writers, len(product.writers))
    reference, ours = [], []
    for repeat in range(repeats + 3):
        plan.next_round()
        pair = timed(lambda: torch.matmul(product.a, product.b)), timed(lambda: product.run(plan))
        if repeat >= 3:
            reference.append(pair[0])
            ours.append(pair[1])
    error = product.error()
    assert error < 1e-2, f"the product is off by {error}"
    assert int(plan.faults.abs().sum()) == 0 and bool((plan.gates[:, 0] == repeats + 3).all()), "marks are wrong"
    torch_ms, ms = statistics.median(reference), statistics.median(ours)
    rate = 2e-9 * size**3
    c, block = kernel.described, [kernel.constants[f"BLOCK_{axis}"] for axis in "MNK"]
    print(f"{folder.name} {name}: tiles {block[0]}x{block[1]}x{block[2]}, {c['warps']} warps, {c['shared']} B shared, {product.programs} programs, {len(product.writers)} chunks: "
          f"{ms:.3f} ms {rate / ms:.0f} TFLOP/s; torch {torch_ms:.3f} ms {rate / torch_ms:.0f} TFLOP/s; "
          f"of torch's speed {torch_ms / ms:.3f}; error {error:.1e}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, nargs="+")
    parser.add_argument("--kernel", action="append", help="gemm and gluon_gemm if not given")
    parser.add_argument("--size", type=int, default=8192, help="of the product that is timed; 0 times none")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--unchecked", action="store_true", help="only time")
    given = parser.parse_args()
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    print(f"{torch.cuda.get_device_name(0)}, torch {torch.__version__}, {time.strftime('%Y-%m-%d')}", flush=True)
    failed = False
    for folder in given.folder:
        for name in given.kernel or ["gemm", "gluon_gemm"]:
            try:
                if not given.unchecked:
                    check(folder, name)
                    print(f"{folder.name} {name}: checked", flush=True)
                if given.size:
                    bench(folder, name, given.size, given.repeats)
            except Exception:
                failed = True
                print(f"{folder.name} {name}: FAILED", flush=True)
                traceback.print_exc()
    sys.exit(failed)


if __name__ == "__main__":
    main()
