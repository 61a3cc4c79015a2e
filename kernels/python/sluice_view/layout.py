"""The words that a plan's host and its kernels share.

kernels/abi.go and kernels/include/sluice.h say the same in Go and in C, and a
test compares the three. Values are bytes, except where a name ends in WORD:
those are indexes of 8-byte words.
"""

ABI_VERSION = 1

# A gate row, one per chunk in every rank's gate table.
GATE_BYTES = 64
GATE_READY = 0
GATE_ARRIVAL = 8
GATE_WRITERS = 16

# A fault row, one per rank.
FAULT_BYTES = 64
FAULT_FOREIGN = 0
FAULT_LAST = 8
FAULT_EXTRA = 16

# The handle.
VERSION_WORD = 0
CHUNKS_WORD = 1
RANK_WORD = 2
ROUND_WORD = 3
GATES_WORD = 4
WORLD_WORD = 5
FIRST_WORD = 6
OWN_WORD = 7
TABLES_WORD = 8
FAULTS_WORD = 9
TRACE_WORD = 10
HANDLE_WORDS = 11

# Two words for each chunk of all ranks, right behind the handle.
CHUNK_WRITERS_WORD = 0
CHUNK_OWNER_WORD = 1
CHUNK_WORDS = 2
