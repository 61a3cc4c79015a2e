"""The producer in Gluon, once for Hopper's matrix units and once for CDNA's."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, warpgroup_mma, warpgroup_mma_wait

from gemm import order
from sluice_view.gluon_view import TriggeredView, barrier, constexpr_function

tile_of = gluon.jit(order.tile_of.fn)


@constexpr_function
def row_by_row(width, warp_size, warps):
    """The layout in which a program loads rows of width bfloat16: 16 bytes a thread."""
    across = min(width // 8, warp_size)
    return gl.BlockedLayout([1, 8], [warp_size // across, across], [warps, 1], [1, 0])


@constexpr_function
def hopper_sums(block_n, warps):
    return gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[warps, 1], instr_shape=[16, block_n, 16])


@constexpr_function
def swizzled():
    return gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=2)


@constexpr_function
def cdna_sums(version, warps):
    shape = [32, 32, 8 if version == 3 else 16]
    try:
        return gl.amd.AMDMFMALayout(version=version, instr_shape=shape, transposed=True, warps_per_cta=[warps // 2, 2])
    except AssertionError:
        return gl.amd.AMDMFMALayout(version=version, instr_shape=shape[:2], transposed=True,
                                    warps_per_cta=[warps // 2, 2])


@gluon.jit
def hopper_slice(a, b, m, n, k, row, column, at, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_K: gl.constexpr,
                 WARPS: gl.constexpr):
    """The slice of both matrices that begins at depth `at`, in registers."""
    by_a: gl.constexpr = row_by_row(BLOCK_K, 32, WARPS)
    by_b: gl.constexpr = row_by_row(BLOCK_N, 32, WARPS)
    a_rows = row + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, by_a))
    a_depth = at + gl.arange(0, BLOCK_K, layout=gl.SliceLayout(0, by_a))
    b_depth = at + gl.arange(0, BLOCK_K, layout=gl.SliceLayout(1, by_b))
    b_columns = column + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, by_b))
    x = gl.load(a + a_rows[:, None].to(gl.int64) * k + a_depth[None, :],
                mask=(a_rows[:, None] < m) & (a_depth[None, :] < k), other=0.0)
    y = gl.load(b + b_depth[:, None].to(gl.int64) * n + b_columns[None, :],
                mask=(b_depth[:, None] < k) & (b_columns[None, :] < n), other=0.0)
    return x, y


@gluon.jit
def gemm_hopper(handle, out, a, b, m, n, k, steps_per_chunk, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr,
                BLOCK_K: gl.constexpr, GROUP: gl.constexpr, WARPS: gl.constexpr):
    view = TriggeredView.initialize(handle)
    first = view.first()
    sums_layout: gl.constexpr = hopper_sums(BLOCK_N, WARPS)
    shared: gl.constexpr = swizzled()
    a_slice = gl.allocate_shared_memory(gl.bfloat16, [BLOCK_M, BLOCK_K], shared)
    b_slice = gl.allocate_shared_memory(gl.bfloat16, [BLOCK_K, BLOCK_N], shared)
    tiles_m = (m + BLOCK_M - 1) // BLOCK_M
    tiles_n = (n + BLOCK_N - 1) // BLOCK_N
    for step in range(gl.program_id(0), tiles_m * tiles_n, gl.num_programs(0)):
        tile = tile_of(step, tiles_m, tiles_n, GROUP)
        row = tile // tiles_n * BLOCK_M
        column = tile % tiles_n * BLOCK_N
        sums = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, layout=sums_layout)
        x, y = hopper_slice(a, b, m, n, k, row, column, 0, BLOCK_M, BLOCK_N, BLOCK_K, WARPS)
        for at in range(0, k, BLOCK_K):
            barrier()  # every warp has multiplied the slice before
            a_slice.store(x)
            b_slice.store(y)
            fence_async_shared()
            barrier()
            sums = warpgroup_mma(a_slice, b_slice, sums, is_async=True)
            x, y = hopper_slice(a, b, m, n, k, row, column, at + BLOCK_K, BLOCK_M, BLOCK_N, BLOCK_K, WARPS)
            sums = warpgroup_mma_wait(num_outstanding=0, deps=(sums, ))
        rows = row + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, sums_layout))
        columns = column + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, sums_layout))
        gl.store(out + rows[:, None].to(gl.int64) * n + columns[None, :], sums.to(gl.bfloat16),
                 mask=(rows[:, None] < m) & (columns[None, :] < n))
        view.mark_ready(first + step // steps_per_chunk)


@gluon.jit
def gemm_cdna(handle, out, a, b, m, n, k, steps_per_chunk, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr,
              BLOCK_K: gl.constexpr, GROUP: gl.constexpr, WARPS: gl.constexpr, VERSION: gl.constexpr):
    """Offsets into each matrix are 32 bits, as buffer loads and stores take them."""
    view = TriggeredView.initialize(handle)
    first = view.first()
    sums_layout: gl.constexpr = cdna_sums(VERSION, WARPS)
    a_operand: gl.constexpr = gl.DotOperandLayout(operand_index=0, parent=sums_layout, k_width=8)
    b_operand: gl.constexpr = gl.DotOperandLayout(operand_index=1, parent=sums_layout, k_width=8)
    by_a: gl.constexpr = row_by_row(BLOCK_K, 64, WARPS)
    by_b: gl.constexpr = row_by_row(BLOCK_N, 64, WARPS)
    tiles_m = (m + BLOCK_M - 1) // BLOCK_M
    tiles_n = (n + BLOCK_N - 1) // BLOCK_N
    for step in range(gl.program_id(0), tiles_m * tiles_n, gl.num_programs(0)):
        tile = tile_of(step, tiles_m, tiles_n, GROUP)
        row = tile // tiles_n * BLOCK_M
        column = tile % tiles_n * BLOCK_N
        a_rows = row + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, by_a))
        b_columns = column + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, by_b))
        sums = gl.zeros([BLOCK_M, BLOCK_N], gl.float32, layout=sums_layout)
        for at in range(0, k, BLOCK_K):
            a_depth = at + gl.arange(0, BLOCK_K, layout=gl.SliceLayout(0, by_a))
            b_depth = at + gl.arange(0, BLOCK_K, layout=gl.SliceLayout(1, by_b))
            x = gl.amd.cdna3.buffer_load(a, a_rows[:, None] * k + a_depth[None, :],
                                         mask=(a_rows[:, None] < m) & (a_depth[None, :] < k), other=0.0)
            y = gl.amd.cdna3.buffer_load(b, b_depth[:, None] * n + b_columns[None, :],
                                         mask=(b_depth[:, None] < k) & (b_columns[None, :] < n), other=0.0)
            sums = gl.amd.cdna3.mfma(gl.convert_layout(x, a_operand), gl.convert_layout(y, b_operand), sums)
        rows = row + gl.arange(0, BLOCK_M, layout=gl.SliceLayout(1, sums_layout))
        columns = column + gl.arange(0, BLOCK_N, layout=gl.SliceLayout(0, sums_layout))
        gl.amd.cdna3.buffer_store(sums.to(gl.bfloat16), out, rows[:, None] * n + columns[None, :],
                                  mask=(rows[:, None] < m) & (columns[None, :] < n))
        view.mark_ready(first + step // steps_per_chunk)
