"""TriggeredView for kernels in Triton."""

import triton
import triton.language as tl
from triton.language.core import _aggregate as aggregate

from . import layout
from .assembly import (
    AMD_LOOK, AMD_LOOK_CONSTRAINTS, AMD_STORES_DONE, AMD_STORES_DONE_CONSTRAINTS, AMD_TRAP, AMD_TRAP_CONSTRAINTS,
    NVIDIA_LOOK, NVIDIA_LOOK_CONSTRAINTS, NVIDIA_TRAP, NVIDIA_TRAP_CONSTRAINTS)
from .target import is_amd, threads

ABI_VERSION = tl.constexpr(layout.ABI_VERSION)
GATE_BYTES = tl.constexpr(layout.GATE_BYTES)
GATE_READY = tl.constexpr(layout.GATE_READY)
GATE_ARRIVAL = tl.constexpr(layout.GATE_ARRIVAL)
GATE_WRITERS = tl.constexpr(layout.GATE_WRITERS)
FAULT_FOREIGN = tl.constexpr(layout.FAULT_FOREIGN)
FAULT_LAST = tl.constexpr(layout.FAULT_LAST)
FAULT_EXTRA = tl.constexpr(layout.FAULT_EXTRA)
CHUNKS_WORD = tl.constexpr(layout.CHUNKS_WORD)
RANK_WORD = tl.constexpr(layout.RANK_WORD)
ROUND_WORD = tl.constexpr(layout.ROUND_WORD)
GATES_WORD = tl.constexpr(layout.GATES_WORD)
WORLD_WORD = tl.constexpr(layout.WORLD_WORD)
FIRST_WORD = tl.constexpr(layout.FIRST_WORD)
OWN_WORD = tl.constexpr(layout.OWN_WORD)
FAULTS_WORD = tl.constexpr(layout.FAULTS_WORD)
HANDLE_WORDS = tl.constexpr(layout.HANDLE_WORDS)
CHUNK_WORDS = tl.constexpr(layout.CHUNK_WORDS)
CHUNK_WRITERS_WORD = tl.constexpr(layout.CHUNK_WRITERS_WORD)
CHUNK_OWNER_WORD = tl.constexpr(layout.CHUNK_OWNER_WORD)


@triton.jit
def stores_done():
    if is_amd():
        tl.inline_asm_elementwise(AMD_STORES_DONE, AMD_STORES_DONE_CONSTRAINTS, [], dtype=tl.int32, is_pure=False,
                                  pack=1)


@triton.jit
def gather_stores():
    """Every store of the program has been made when it returns, in every thread."""
    stores_done()
    tl.debug_barrier()


@triton.jit
def trap():
    if is_amd():
        tl.inline_asm_elementwise(AMD_TRAP, AMD_TRAP_CONSTRAINTS, [], dtype=tl.int32, is_pure=False, pack=1)
    else:
        tl.inline_asm_elementwise(NVIDIA_TRAP, NVIDIA_TRAP_CONSTRAINTS, [], dtype=tl.int32, is_pure=False, pack=1)


# One thread acts for the program. An operation on a tensor with an element for
# every thread, of which all but the first are masked, is that thread's alone; one
# on a scalar would tell all of its result, which costs a barrier that hides
# whether there was one before.


@triton.jit
def zeros():
    """A zero for every thread."""
    return tl.full([threads()], 0, tl.int32)


@triton.jit
def is_leader():
    return tl.arange(0, threads()) == 0


@triton.jit
def words_at(address):
    """A pointer to the word at the address, for every thread."""
    return tl.cast(address, tl.pointer_type(tl.int64)) + zeros()


@triton.jit
def count(address, where):
    """Adds 1 to the low half of a word that orders nothing, where that is true."""
    halves = tl.cast(address, tl.pointer_type(tl.int32)) + zeros()
    tl.atomic_add(halves, zeros() + 1, mask=where, sem="relaxed", scope="sys")


@triton.jit
def foreign(handle, chunk, where):
    faults = tl.load(handle + FAULTS_WORD)
    count(faults + FAULT_FOREIGN, where)
    tl.store(words_at(faults + FAULT_LAST), zeros() + chunk, mask=where)


@triton.jit
def mark(handle, chunk):
    """The leader's part of mark_ready. It does not branch, so that on every path
    data is in memory before the addition, and the addition before the gate."""
    first = tl.load(handle + FIRST_WORD)
    past = first + tl.load(handle + OWN_WORD)
    ours = (chunk >= first) & (chunk < past)
    round = tl.load(handle + ROUND_WORD)
    extra = tl.load(handle + FAULTS_WORD) + FAULT_EXTRA
    row = tl.load(handle + GATES_WORD) + chunk * GATE_BYTES
    writers = tl.load(handle + HANDLE_WORDS + chunk * CHUNK_WORDS + CHUNK_WRITERS_WORD, mask=ours, other=0)
    complete = round * writers
    marking = is_leader() & ours
    counters = words_at(row + GATE_WRITERS)
    gates = words_at(row + GATE_READY)
    one = tl.cast(zeros() + 1, tl.int64)
    rounds = zeros() + round
    # The additions of all writers are before the last one. On AMD that one opens
    # the gate when its result is back, so only NVIDIA's gate needs a release.
    if is_amd():
        marks = tl.atomic_add(counters, one, mask=marking, sem="release", scope="sys") + 1
        tl.atomic_xchg(gates, rounds, mask=marking & (marks == complete), sem="relaxed", scope="sys")
    else:
        marks = tl.atomic_add(counters, one, mask=marking, sem="acq_rel", scope="sys") + 1
        tl.atomic_xchg(gates, rounds, mask=marking & (marks == complete), sem="release", scope="sys")
    count(extra, marking & (marks > complete))
    foreign(handle, chunk, is_leader() & ((chunk < first) | (chunk >= past)))


@triton.jit
def gate_of(handle, chunk):
    """The address of the word that tells this rank of the chunk."""
    row = tl.load(handle + GATES_WORD) + chunk * GATE_BYTES
    first = tl.load(handle + FIRST_WORD)
    own = (chunk >= first) & (chunk < first + tl.load(handle + OWN_WORD))
    return row + tl.where(own, GATE_READY, GATE_ARRIVAL)


@triton.jit
def is_open(gate, round):
    """Whether every thread sees the gate open: its low 32 bits, unsigned, as copy
    engines compare. What is read after True is at least as new. Reducing over
    the program's threads makes the answer the same for all of them."""
    each = zeros() + gate
    if is_amd():
        seen = tl.inline_asm_elementwise(AMD_LOOK, AMD_LOOK_CONSTRAINTS, [each], dtype=tl.int32, is_pure=False, pack=1)
    else:
        seen = tl.inline_asm_elementwise(NVIDIA_LOOK, NVIDIA_LOOK_CONSTRAINTS, [each], dtype=tl.int32, is_pure=False,
                                         pack=1)
    reached = tl.cast(seen, tl.uint32, bitcast=True) >= tl.cast(round, tl.uint32)
    return tl.min(tl.cast(reached, tl.int32), axis=0) == 1


@aggregate
class TriggeredView:
    """What a kernel sees of its plan. All of a program calls these, outside
    divergent branches."""

    handle: tl.tensor

    @triton.constexpr_function
    def __init__(self, handle):
        self.handle = handle

    @staticmethod
    @triton.jit
    def initialize(handle):
        """The view of the handle that Start returned: a pointer to int64. A handle
        of another layout ends the kernel with an error."""
        if tl.load(handle) != ABI_VERSION:
            trap()
        return TriggeredView(handle)

    @triton.jit
    def mark_ready(self, chunk):
        """Says that this program's writes to the chunk (a global id) are made. The
        mark that completes the round opens the gate; one of a chunk that is not
        this rank's, or one too many, is counted in the fault row."""
        gather_stores()
        mark(self.handle, tl.cast(chunk, tl.int64))

    @triton.jit
    def arrived(self, chunk):
        """Whether the chunk of this round is here; for a chunk of this rank's own,
        whether it is marked ready. What is read after True is the round's data.
        A chunk that does not exist is counted in the fault row and has arrived."""
        chunk = tl.cast(chunk, tl.int64)
        chunks = tl.load(self.handle + CHUNKS_WORD)
        foreign(self.handle, chunk, is_leader() & ((chunk < 0) | (chunk >= chunks)))
        here = True
        if (chunk >= 0) & (chunk < chunks):
            here = is_open(gate_of(self.handle, chunk), tl.load(self.handle + ROUND_WORD))
        return here

    @triton.jit
    def wait(self, chunk):
        """Returns once the chunk has arrived, with the number of looks it took: 0
        for a chunk that does not exist, which is counted in the fault row."""
        chunk = tl.cast(chunk, tl.int64)
        chunks = tl.load(self.handle + CHUNKS_WORD)
        foreign(self.handle, chunk, is_leader() & ((chunk < 0) | (chunk >= chunks)))
        looks = 0
        if (chunk >= 0) & (chunk < chunks):
            gate = gate_of(self.handle, chunk)
            round = tl.load(self.handle + ROUND_WORD)
            looks = 1
            while not is_open(gate, round):
                looks += 1
        return looks

    @triton.jit
    def rank(self):
        """The rank that the kernel runs for."""
        return tl.load(self.handle + RANK_WORD)

    @triton.jit
    def round(self):
        """The round that was started, from 1 on."""
        return tl.load(self.handle + ROUND_WORD)

    @triton.jit
    def world(self):
        """How many ranks there are."""
        return tl.load(self.handle + WORLD_WORD)

    @triton.jit
    def chunks(self):
        """How many chunks all ranks have together."""
        return tl.load(self.handle + CHUNKS_WORD)

    @triton.jit
    def first(self):
        """The rank's first chunk."""
        return tl.load(self.handle + FIRST_WORD)

    @triton.jit
    def own(self):
        """How many chunks the rank has."""
        return tl.load(self.handle + OWN_WORD)

    @triton.jit
    def writers(self, chunk):
        """How many marks complete a chunk in a round."""
        return tl.load(self.handle + HANDLE_WORDS + chunk * CHUNK_WORDS + CHUNK_WRITERS_WORD)

    @triton.jit
    def owner(self, chunk):
        """The rank that a chunk belongs to."""
        return tl.load(self.handle + HANDLE_WORDS + chunk * CHUNK_WORDS + CHUNK_OWNER_WORD)
