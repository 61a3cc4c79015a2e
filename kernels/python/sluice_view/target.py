"""What a kernel is being compiled for, as constants of the compilation.

A kernel may be compiled for a GPU that the machine does not have, so these ask
the compilation's options and never the driver.
"""

from triton.language.core import builtin, constexpr


@builtin
def is_amd(_semantic=None):
    """Whether the kernel is compiled for an AMD GPU."""
    return constexpr(_semantic.builder.options.backend_name == "hip")


@builtin
def threads(_semantic=None):
    """How many threads a program has."""
    options = _semantic.builder.options
    return constexpr(options.num_warps * options.warp_size)


@builtin
def warps(_semantic=None):
    """How many warps (AMD: waves) a program has."""
    return constexpr(_semantic.builder.options.num_warps)


@builtin
def warp_size(_semantic=None):
    """How many threads a warp has."""
    return constexpr(_semantic.builder.options.warp_size)
