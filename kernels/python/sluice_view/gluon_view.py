"""TriggeredView for kernels in Gluon: the methods of the Triton one, on the same
handle.

mark_ready waits for vector-memory stores, AMD's buffer stores included. A
kernel that stores through NVIDIA's bulk copies waits for those itself before it
marks, and calls mark_ready after warp_specialize has returned, not inside a
partition.
"""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.language.core import _aggregate as aggregate

from . import layout
from .assembly import (
    AMD_LOOK, AMD_LOOK_CONSTRAINTS, AMD_STORES_DONE, AMD_STORES_DONE_CONSTRAINTS, AMD_TRAP, AMD_TRAP_CONSTRAINTS,
    NVIDIA_LOOK, NVIDIA_LOOK_CONSTRAINTS, NVIDIA_TRAP, NVIDIA_TRAP_CONSTRAINTS)
from .target import is_amd, threads, warp_size, warps

barrier = gl.barrier if hasattr(gl, "barrier") else gl.thread_barrier
constexpr_function = gluon.constexpr_function if hasattr(gluon, "constexpr_function") else gl.constexpr_function

ABI_VERSION = gl.constexpr(layout.ABI_VERSION)
GATE_BYTES = gl.constexpr(layout.GATE_BYTES)
GATE_READY = gl.constexpr(layout.GATE_READY)
GATE_ARRIVAL = gl.constexpr(layout.GATE_ARRIVAL)
GATE_WRITERS = gl.constexpr(layout.GATE_WRITERS)
FAULT_FOREIGN = gl.constexpr(layout.FAULT_FOREIGN)
FAULT_LAST = gl.constexpr(layout.FAULT_LAST)
FAULT_EXTRA = gl.constexpr(layout.FAULT_EXTRA)
CHUNKS_WORD = gl.constexpr(layout.CHUNKS_WORD)
RANK_WORD = gl.constexpr(layout.RANK_WORD)
ROUND_WORD = gl.constexpr(layout.ROUND_WORD)
GATES_WORD = gl.constexpr(layout.GATES_WORD)
WORLD_WORD = gl.constexpr(layout.WORLD_WORD)
FIRST_WORD = gl.constexpr(layout.FIRST_WORD)
OWN_WORD = gl.constexpr(layout.OWN_WORD)
FAULTS_WORD = gl.constexpr(layout.FAULTS_WORD)
HANDLE_WORDS = gl.constexpr(layout.HANDLE_WORDS)
CHUNK_WORDS = gl.constexpr(layout.CHUNK_WORDS)
CHUNK_WRITERS_WORD = gl.constexpr(layout.CHUNK_WRITERS_WORD)
CHUNK_OWNER_WORD = gl.constexpr(layout.CHUNK_OWNER_WORD)


@gluon.jit
def stores_done():
    if is_amd():
        gl.inline_asm_elementwise(AMD_STORES_DONE, AMD_STORES_DONE_CONSTRAINTS, [], dtype=gl.int32, is_pure=False,
                                  pack=1)


@gluon.jit
def gather_stores():
    """Every store of the program has been made when it returns, in every thread."""
    stores_done()
    barrier()


@gluon.jit
def trap():
    if is_amd():
        gl.inline_asm_elementwise(AMD_TRAP, AMD_TRAP_CONSTRAINTS, [], dtype=gl.int32, is_pure=False, pack=1)
    else:
        gl.inline_asm_elementwise(NVIDIA_TRAP, NVIDIA_TRAP_CONSTRAINTS, [], dtype=gl.int32, is_pure=False, pack=1)


@constexpr_function
def one_each(warp_size, warps):
    """The layout of a tensor with an element for every thread."""
    return gl.BlockedLayout([1], [warp_size], [warps], [0])


# One thread acts for the program. An operation on a tensor with an element for
# every thread, of which all but the first are masked, is that thread's alone; one
# on a scalar would tell all of its result, which costs a barrier that hides
# whether there was one before.


@gluon.jit
def zeros():
    """A zero for every thread."""
    return gl.full([threads()], 0, gl.int32, layout=one_each(warp_size(), warps()))


@gluon.jit
def is_leader():
    return gl.arange(0, threads(), layout=one_each(warp_size(), warps())) == 0


@gluon.jit
def words_at(address):
    """A pointer to the word at the address, for every thread."""
    return address.to(gl.pointer_type(gl.int64)) + zeros()


@gluon.jit
def count(address, where):
    """Adds 1 to the low half of a word that orders nothing, where that is true."""
    halves = address.to(gl.pointer_type(gl.int32)) + zeros()
    gl.atomic_add(halves, zeros() + 1, mask=where, sem="relaxed", scope="sys")


@gluon.jit
def foreign(handle, chunk, where):
    faults = gl.load(handle + FAULTS_WORD)
    count(faults + FAULT_FOREIGN, where)
    gl.store(words_at(faults + FAULT_LAST), zeros() + chunk, mask=where)


@gluon.jit
def mark(handle, chunk):
    """The leader's part of mark_ready. It does not branch, so that on every path
    data is in memory before the addition, and the addition before the gate."""
    first = gl.load(handle + FIRST_WORD)
    past = first + gl.load(handle + OWN_WORD)
    ours = (chunk >= first) & (chunk < past)
    round = gl.load(handle + ROUND_WORD)
    extra = gl.load(handle + FAULTS_WORD) + FAULT_EXTRA
    row = gl.load(handle + GATES_WORD) + chunk * GATE_BYTES
    writers = gl.load(handle + HANDLE_WORDS + chunk * CHUNK_WORDS + CHUNK_WRITERS_WORD, mask=ours, other=0)
    complete = round * writers
    marking = is_leader() & ours
    counters = words_at(row + GATE_WRITERS)
    gates = words_at(row + GATE_READY)
    one = (zeros() + 1).to(gl.int64)
    rounds = zeros() + round
    # The additions of all writers are before the last one. On AMD that one opens
    # the gate when its result is back, so only NVIDIA's gate needs a release.
    if is_amd():
        marks = gl.atomic_add(counters, one, mask=marking, sem="release", scope="sys") + 1
        gl.atomic_xchg(gates, rounds, mask=marking & (marks == complete), sem="relaxed", scope="sys")
    else:
        marks = gl.atomic_add(counters, one, mask=marking, sem="acq_rel", scope="sys") + 1
        gl.atomic_xchg(gates, rounds, mask=marking & (marks == complete), sem="release", scope="sys")
    count(extra, marking & (marks > complete))
    foreign(handle, chunk, is_leader() & ((chunk < first) | (chunk >= past)))


@gluon.jit
def gate_of(handle, chunk):
    """The address of the word that tells this rank of the chunk."""
    row = gl.load(handle + GATES_WORD) + chunk * GATE_BYTES
    first = gl.load(handle + FIRST_WORD)
    own = (chunk >= first) & (chunk < first + gl.load(handle + OWN_WORD))
    at = row + GATE_ARRIVAL
    if own:
        at = row + GATE_READY
    return at


@gluon.jit
def is_open(gate, round):
    """Whether every thread sees the gate open: its low 32 bits, unsigned, as copy
    engines compare. What is read after True is at least as new."""
    each = zeros() + gate
    if is_amd():
        seen = gl.inline_asm_elementwise(AMD_LOOK, AMD_LOOK_CONSTRAINTS, [each], dtype=gl.int32, is_pure=False, pack=1)
    else:
        seen = gl.inline_asm_elementwise(NVIDIA_LOOK, NVIDIA_LOOK_CONSTRAINTS, [each], dtype=gl.int32, is_pure=False,
                                         pack=1)
    reached = seen.to(gl.uint32, bitcast=True) >= round.to(gl.uint32)
    return gl.min(reached.to(gl.int32), axis=0) == 1


@aggregate
class TriggeredView:
    """What a kernel sees of its plan. All of a program calls these, outside
    divergent branches and partitions."""

    handle: gl.tensor

    @constexpr_function
    def __init__(self, handle):
        self.handle = handle

    @staticmethod
    @gluon.jit
    def initialize(handle):
        """The view of the handle that Start returned: a pointer to int64. A handle
        of another layout ends the kernel with an error."""
        if gl.load(handle) != ABI_VERSION:
            trap()
        return TriggeredView(handle)

    @gluon.jit
    def mark_ready(self, chunk):
        """Says that this program's writes to the chunk (a global id) are made."""
        gather_stores()
        mark(self.handle, gl.to_tensor(chunk).to(gl.int64))

    @gluon.jit
    def arrived(self, chunk):
        """Whether the chunk of this round is here. What is read after True is the
        round's data."""
        at = gl.to_tensor(chunk).to(gl.int64)
        chunks = gl.load(self.handle + CHUNKS_WORD)
        foreign(self.handle, at, is_leader() & ((at < 0) | (at >= chunks)))
        here = gl.to_tensor(1) == 1
        if (at >= 0) & (at < chunks):
            here = is_open(gate_of(self.handle, at), gl.load(self.handle + ROUND_WORD))
        return here

    @gluon.jit
    def wait(self, chunk):
        """Returns once the chunk has arrived, with the number of looks it took."""
        at = gl.to_tensor(chunk).to(gl.int64)
        chunks = gl.load(self.handle + CHUNKS_WORD)
        foreign(self.handle, at, is_leader() & ((at < 0) | (at >= chunks)))
        looks = 0
        if (at >= 0) & (at < chunks):
            gate = gate_of(self.handle, at)
            round = gl.load(self.handle + ROUND_WORD)
            looks = 1
            while not is_open(gate, round):
                looks += 1
        return looks

    @gluon.jit
    def rank(self):
        """The rank that the kernel runs for."""
        return gl.load(self.handle + RANK_WORD)

    @gluon.jit
    def round(self):
        """The round that was started, from 1 on."""
        return gl.load(self.handle + ROUND_WORD)

    @gluon.jit
    def world(self):
        """How many ranks there are."""
        return gl.load(self.handle + WORLD_WORD)

    @gluon.jit
    def chunks(self):
        """How many chunks all ranks have together."""
        return gl.load(self.handle + CHUNKS_WORD)

    @gluon.jit
    def first(self):
        """The rank's first chunk."""
        return gl.load(self.handle + FIRST_WORD)

    @gluon.jit
    def own(self):
        """How many chunks the rank has."""
        return gl.load(self.handle + OWN_WORD)

    @gluon.jit
    def writers(self, chunk):
        """How many marks complete a chunk in a round."""
        return gl.load(self.handle + HANDLE_WORDS + chunk * CHUNK_WORDS + CHUNK_WRITERS_WORD)

    @gluon.jit
    def owner(self, chunk):
        """The rank that a chunk belongs to."""
        return gl.load(self.handle + HANDLE_WORDS + chunk * CHUNK_WORDS + CHUNK_OWNER_WORD)
