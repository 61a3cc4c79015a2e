package kernels

// The layout of what host and kernels share. include/sluice.h has the same
// layout for devices.

// ABIVersion is the first word of every handle.
const ABIVersion = 1

// A gate row is 64 bytes per chunk on every rank: three 8-byte words, then
// zeros. Gates only grow. The owner of the chunk uses ready and writers, the
// other ranks arrival.
const (
	GateRow     = 64 // bytes
	GateReady   = 0  // the round up to which the chunk is marked ready
	GateArrival = 8  // the round up to which the chunk has arrived
	GateWriters = 16 // MarkReady calls so far, over all rounds
)

// A handle is a row of 8-byte words; these are the indexes of its fields.
// After them come two words for each chunk of all ranks: how many marks
// complete it in a round, and the rank that owns it.
const (
	HandleVersion    = iota // ABIVersion
	HandleChunks            // chunks of all ranks
	HandleRank              // the rank that the handle is for
	HandleRound             // the round that was started
	HandleGates             // address of the rank's own gate table
	HandleWorld             // ranks in all
	HandleFirst             // the rank's first chunk
	HandleOwn               // how many chunks the rank owns
	HandleTables            // address of a word per rank: its gate table's address
	HandleFaults            // address of the fault row
	HandleTrace             // address of a word per chunk for when it was marked, or 0
	HandleChunkWords        // first of the words per chunk
)

// HandleWords is the length in words of a handle for so many chunks.
func HandleWords(chunks int) int { return HandleChunkWords + 2*chunks }

// The fault row is 64 bytes: three 8-byte words, then zeros.
const (
	FaultRow     = 64 // bytes
	FaultForeign = 0  // marks of chunks that are not the rank's or do not exist
	FaultLast    = 8  // the chunk of the last such mark
	FaultExtra   = 16 // marks beyond the chunk's writers
)
