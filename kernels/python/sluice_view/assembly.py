"""The instructions that neither language has an operation for.

They are strings for inline_asm_elementwise, which wants a result from each:
where there is nothing to say it is 0.
"""

from triton.language.core import constexpr

# Until this wave's stores have left for the L2, buffer stores included. AMD's
# barrier alone waits for none of them.
AMD_STORES_DONE = constexpr("s_waitcnt vmcnt(0) lgkmcnt(0)\n\tv_mov_b32 $0, 0")
AMD_STORES_DONE_CONSTRAINTS = constexpr("=v,~{memory}")

# The low half of a word, with an acquire at system scope.
AMD_LOOK = constexpr("global_load_dword $0, $1, off sc0 sc1\n\ts_waitcnt vmcnt(0)\n\tbuffer_inv sc0 sc1")
AMD_LOOK_CONSTRAINTS = constexpr("=v,v,~{memory}")
NVIDIA_LOOK = constexpr("ld.acquire.sys.global.u32 $0, [$1];")
NVIDIA_LOOK_CONSTRAINTS = constexpr("=r,l,~{memory}")

# The kernel ends with an error.
AMD_TRAP = constexpr("s_trap 2\n\tv_mov_b32 $0, 0")
AMD_TRAP_CONSTRAINTS = constexpr("=v")
NVIDIA_TRAP = constexpr("trap;\n\tmov.u32 $0, 0;")
NVIDIA_TRAP_CONSTRAINTS = constexpr("=r")
