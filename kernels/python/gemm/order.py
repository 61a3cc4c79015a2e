"""Which tile a producer computes at a step, and nothing else.

The kernels call it on the device; build.py exports it to the host, whose
schedule follows it. So it is plain arithmetic on integers of at least 0.
"""

import triton
import triton.language as tl


@triton.jit
def tile_of(step, tiles_m, tiles_n, group: tl.constexpr):
    in_group = group * tiles_n
    top = step // in_group * group
    rows = min(tiles_m - top, group)
    rest = step % in_group
    return (top + rest % rows) * tiles_n + rest // rows
