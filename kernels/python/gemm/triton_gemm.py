"""The producer and the consumer in Triton.

The product is out = a b: a is m by k, b is k by n and out m by n, all bfloat16
and row by row; sums are float32. Its programs share the steps of the order and
mark the chunk of each step: steps_per_chunk steps are one chunk.
"""

import triton
import triton.language as tl

from gemm.order import tile_of
from sluice_view.triton_view import TriggeredView


@triton.jit
def product_of_pointers(a, b, m, n, k, row, column, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
                        BLOCK_K: tl.constexpr):
    """One tile's sums. Rows and columns outside the matrices are read from inside
    and not stored."""
    rows = (row + tl.arange(0, BLOCK_M)) % m
    columns = (column + tl.arange(0, BLOCK_N)) % n
    rows = tl.max_contiguous(tl.multiple_of(rows, BLOCK_M), BLOCK_M)
    columns = tl.max_contiguous(tl.multiple_of(columns, BLOCK_N), BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    a_at = a + rows[:, None].to(tl.int64) * k + depth[None, :]
    b_at = b + depth[:, None].to(tl.int64) * n + columns[None, :]
    sums = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for at in range(0, k, BLOCK_K):
        left = k - at
        x = tl.load(a_at, mask=depth[None, :] < left, other=0.0)
        y = tl.load(b_at, mask=depth[:, None] < left, other=0.0)
        sums = tl.dot(x, y, sums)
        a_at += BLOCK_K
        b_at += BLOCK_K * n
    return sums


@triton.jit
def store_tile(out, sums, m, n, row, column, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = row + tl.arange(0, BLOCK_M)
    columns = column + tl.arange(0, BLOCK_N)
    at = out + rows[:, None].to(tl.int64) * n + columns[None, :]
    tl.store(at, sums.to(tl.bfloat16), mask=(rows[:, None] < m) & (columns[None, :] < n))


@triton.jit
def gemm(handle, out, a, b, m, n, k, steps_per_chunk, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
         BLOCK_K: tl.constexpr, GROUP: tl.constexpr):
    """The product with loads by pointers, for every GPU. out is the rank's rows."""
    view = TriggeredView.initialize(handle)
    first = view.first()
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    for step in range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0)):
        tile = tile_of(step, tiles_m, tiles_n, GROUP)
        row = tile // tiles_n * BLOCK_M
        column = tile % tiles_n * BLOCK_N
        sums = product_of_pointers(a, b, m, n, k, row, column, BLOCK_M, BLOCK_N, BLOCK_K)
        store_tile(out, sums, m, n, row, column, BLOCK_M, BLOCK_N)
        view.mark_ready(first + step // steps_per_chunk)


@triton.jit
def gemm_tma(handle, out, a, b, m, n, k, steps_per_chunk, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
             BLOCK_K: tl.constexpr, GROUP: tl.constexpr):
    """The product with loads through tensor descriptors that the kernel makes in
    its scratch memory: k and n are multiples of 8."""
    view = TriggeredView.initialize(handle)
    first = view.first()
    a_tiles = tl.make_tensor_descriptor(a, shape=[m, k], strides=[k, 1], block_shape=[BLOCK_M, BLOCK_K])
    b_tiles = tl.make_tensor_descriptor(b, shape=[k, n], strides=[n, 1], block_shape=[BLOCK_K, BLOCK_N])
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    for step in range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0)):
        tile = tile_of(step, tiles_m, tiles_n, GROUP)
        row = tile // tiles_n * BLOCK_M
        column = tile % tiles_n * BLOCK_N
        sums = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
        for at in range(0, k, BLOCK_K):
            x = a_tiles.load([row, at])
            y = b_tiles.load([at, column])
            sums = tl.dot(x, y, sums)
        store_tile(out, sums, m, n, row, column, BLOCK_M, BLOCK_N)
        view.mark_ready(first + step // steps_per_chunk)


@triton.jit
def sum_of_tile(out, n, top, left, bottom, right, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """The sum of the elements from top and left up to bottom and right."""
    total = tl.full((), 0, tl.int64)
    for row in range(top, bottom, BLOCK_M):
        for column in range(left, right, BLOCK_N):
            rows = row + tl.arange(0, BLOCK_M)
            columns = column + tl.arange(0, BLOCK_N)
            x = tl.load(out + rows[:, None].to(tl.int64) * n + columns[None, :],
                        mask=(rows[:, None] < bottom) & (columns[None, :] < right), other=0)
            total += tl.sum(tl.sum((x.to(tl.int32) & 0xFFFF).to(tl.int64), axis=1), axis=0)
    return total


@triton.jit
def consume(handle, out, sums, m, n, tile_m, tile_n, steps_per_chunk, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
            GROUP: tl.constexpr):
    """Waits for the chunks of all ranks, one after the other, and leaves in sums
    (a word per chunk) the sum of the chunk's elements taken as unsigned 16-bit
    integers. out is the rows of all ranks, m of each, as int16; every rank's
    producer has tiles of tile_m by tile_n."""
    view = TriggeredView.initialize(handle)
    chunks = tl.cast(view.chunks(), tl.int32)
    each = chunks // tl.cast(view.world(), tl.int32)
    tiles_m = tl.cdiv(m, tile_m)
    tiles_n = tl.cdiv(n, tile_n)
    for chunk in range(tl.program_id(0), chunks, tl.num_programs(0)):
        view.wait(chunk)
        base = chunk // each * m
        start = chunk % each * steps_per_chunk
        total = tl.full((), 0, tl.int64)
        for step in range(start, min(start + steps_per_chunk, tiles_m * tiles_n)):
            tile = tile_of(step, tiles_m, tiles_n, GROUP)
            top = tile // tiles_n * tile_m
            left = tile % tiles_n * tile_n
            total += sum_of_tile(out, n, base + top, left, base + min(top + tile_m, m), min(left + tile_n, n), BLOCK_M,
                                 BLOCK_N)
        tl.store(sums + chunk, total)


@triton.jit
def evaluate(out, steps, tiles_m, tiles_n, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    """The tile of every step, for a host that wants the order from the module."""
    for at in range(tl.program_id(0) * BLOCK, steps, tl.num_programs(0) * BLOCK):
        step = at + tl.arange(0, BLOCK)
        tl.store(out + step, tile_of(step, tiles_m, tiles_n, GROUP).to(tl.int64), mask=step < steps)
