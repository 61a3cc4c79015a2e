"""Compiles the package's kernels ahead of time, for Go to load.

    python3 kernels/python/build.py --out kernels/python/built

needs Triton 3.6 and no GPU. Each kernel and target makes a binary (cubin or
hsaco) and a JSON that says how to launch it, and for NVIDIA the PTX that proofs
read; AMD's binary is disassembled for them. --view names a folder whose
sluice_view is used instead of the one beside this file.
"""

import argparse
import hashlib
import json
import os
import pathlib
import re
import sys
from dataclasses import dataclass, field

HERE = pathlib.Path(__file__).resolve().parent
TARGETS = {"sm_90": ("cuda", 90, 32), "gfx942": ("hip", "gfx942", 64), "gfx950": ("hip", "gfx950", 64)}
PRODUCT = {"handle": "*i64", "out": "*bf16", "a": "*bf16", "b": "*bf16", "m": "i32", "n": "i32", "k": "i32",
           "steps_per_chunk": "i32"}
MULTIPLES = {"n": 16, "k": 16}
HIDDEN = ["global_scratch", "profile_scratch"]


@dataclass
class Kernel:
    """One kernel for one target."""

    name: str  # Go asks for it by this name
    target: str
    module: str
    function: str
    arguments: dict  # name: type, in order
    constants: dict
    options: dict
    multiples: dict = field(default_factory=lambda: MULTIPLES)

    @property
    def gluon(self):
        return "gluon" in self.module


def tile(m, n, k, **more):
    return {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP": 8, **more}


def kernels():
    """All that is built."""
    consumer = {"handle": "*i64", "out": "*i16", "sums": "*i64", "m": "i32", "n": "i32", "tile_m": "i32",
                "tile_n": "i32", "steps_per_chunk": "i32"}
    evaluator = {"out": "*i64", "steps": "i32", "tiles_m": "i32", "tiles_n": "i32"}
    for target, shape, options in (
        ("sm_90", tile(128, 256, 64), {"num_warps": 8, "num_stages": 3}),
        ("gfx942", tile(128, 128, 64), {"num_warps": 4, "num_stages": 2}),
        ("gfx950", tile(128, 128, 64), {"num_warps": 4, "num_stages": 2}),
    ):
        nvidia = target == "sm_90"
        yield Kernel("gemm", target, "gemm.triton_gemm", "gemm_tma" if nvidia else "gemm", PRODUCT, shape, options)
        yield Kernel("consume", target, "gemm.triton_gemm", "consume", consumer,
                     {"BLOCK_M": 64, "BLOCK_N": 128, "GROUP": 8}, {"num_warps": 4, "num_stages": 1}, {"n": 16})
        yield Kernel("evaluate", target, "gemm.triton_gemm", "evaluate", evaluator, {"GROUP": 8, "BLOCK": 128},
                     {"num_warps": 4}, {})
        if nvidia:
            yield Kernel("gluon_gemm", target, "gemm.gluon_gemm", "gemm_hopper", PRODUCT,
                         tile(128, 128, 64, WARPS=4), {"num_warps": 4})
        else:
            version = 3 if target == "gfx942" else 4
            yield Kernel("gluon_gemm", target, "gemm.gluon_gemm", "gemm_cdna", PRODUCT,
                         tile(128, 128, 32, WARPS=4, VERSION=version), {"num_warps": 4})


def compile_kernel(kernel):
    """The kernel as Triton's compiler returns it."""
    import importlib

    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.experimental.gluon._runtime import GluonASTSource

    function = getattr(importlib.import_module(kernel.module), kernel.function)
    names = function.arg_names
    signature = {n: kernel.arguments.get(n, "constexpr") for n in names}
    aligned = [n for n, t in kernel.arguments.items() if t.startswith("*") or n in kernel.multiples]
    attributes = {(names.index(n),): [["tt.divisibility", 16]] for n in aligned}
    source = GluonASTSource if kernel.gluon else ASTSource
    return triton.compile(source(function, signature, dict(kernel.constants), attributes),
                          target=GPUTarget(*TARGETS[kernel.target]), options=dict(kernel.options))


def parameters(text, entry, nvidia):
    """How many parameters the machine code takes."""
    if nvidia:
        head = re.search(r"\.entry\s+" + re.escape(entry) + r"\s*\((.*?)\)", text, re.S)
        return len(re.findall(r"\.param\s", head.group(1)))
    kinds = re.findall(r"\.value_kind:\s*(\w+)", text.split("amdhsa.kernels:")[1])
    return len([k for k in kinds if not k.startswith("hidden_")])


def sources(view):
    """A digest of what kernels are made from."""
    digest = hashlib.sha256()
    for folder in (view or HERE) / "sluice_view", HERE / "gemm":
        for file in sorted(folder.glob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()


def describe(kernel, compiled, files, view):
    """What Go has to know."""
    import triton

    from export import order_of
    from gemm.order import tile_of

    nvidia = kernel.target.startswith("sm_")
    meta = compiled.metadata
    count = parameters(compiled.asm["ptx" if nvidia else "amdgcn"], meta.name, nvidia)
    hidden = count - len(kernel.arguments)
    if not 0 <= hidden <= len(HIDDEN):
        raise RuntimeError(f"{kernel.name} for {kernel.target} takes {count} parameters, "
                           f"and has {len(kernel.arguments)} arguments")
    if getattr(meta, "profile_scratch_size", 0):
        raise RuntimeError(f"{kernel.name} for {kernel.target} wants scratch memory for a profiler")
    return {
        "name": kernel.name,
        "entry": meta.name,
        "arch": kernel.target,
        "language": "gluon" if kernel.gluon else "triton",
        "compiler": f"triton {triton.__version__}",
        "command": "python3 kernels/python/build.py --out kernels/python/built",
        "sources": sources(view),
        "warps": meta.num_warps,
        "warp_size": TARGETS[kernel.target][2],
        "shared": meta.shared,
        "scratch": {"bytes": getattr(meta, "global_scratch_size", 0) or 0,
                    "align": getattr(meta, "global_scratch_align", 1) or 1},
        "arguments": [{"name": n, "type": t, "multiple": 16 if t.startswith("*") else kernel.multiples.get(n, 1)}
                      for n, t in kernel.arguments.items()],
        "hidden": HIDDEN[:hidden],
        "constants": kernel.constants,
        "order": order_of(tile_of.fn, {"group": kernel.constants["GROUP"]}),
        **files,
    }


def write(kernel, compiled, out, view):
    """The files of a kernel."""
    roles = {"binary": "cubin", "text": "ptx"} if kernel.target.startswith("sm_") else {"binary": "hsaco"}
    stem = f"{kernel.name}.{kernel.target}"
    files = {}
    for role, extension in roles.items():
        content = compiled.asm[extension]
        content = content.encode() if isinstance(content, str) else content
        (out / f"{stem}.{extension}").write_bytes(content)
        files[role] = {"file": f"{stem}.{extension}", "sha256": hashlib.sha256(content).hexdigest()}
    description = describe(kernel, compiled, files, view)
    (out / f"{stem}.json").write_text(json.dumps(description, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder to write to")
    parser.add_argument("--view", type=pathlib.Path, help="folder with another sluice_view")
    parser.add_argument("--target", choices=TARGETS, action="append", help="only this one; may be repeated")
    parser.add_argument("--kernel", action="append", help="only this one; may be repeated")
    given = parser.parse_args()
    os.environ["TRITON_DISABLE_LINE_INFO"] = "1"
    sys.path[:0] = [str(p) for p in (given.view, HERE) if p]
    given.out.mkdir(parents=True, exist_ok=True)
    for kernel in kernels():
        if kernel.target in (given.target or TARGETS) and kernel.name in (given.kernel or [kernel.name]):
            write(kernel, compile_kernel(kernel), given.out, given.view)
            print(f"{kernel.name} for {kernel.target}")


if __name__ == "__main__":
    main()
