package hip

// CopyDevice is a device with streams of copies that wait for gates.
type CopyDevice interface {
	Device
	// NewCopyStream makes a stream; name is for errors. failed is told, maybe
	// more than once, when the stream fails with work on it. The error is a
	// *StreamLimitError if there is none left.
	NewCopyStream(name string, failed func(error)) (CopyStream, error)
	// Reach lets the device's kernels and streams use the memory of another
	// device of its platform.
	Reach(other Device) error
}

// CopyStream runs chains of gated copies, one after the other, on copy engines.
type CopyStream interface {
	// Build brings steps into the form that the driver takes.
	Build(steps []CopyStep) (CopyChain, error)
	// Submit puts a chain on the stream: its gates are waited for until their
	// low 32 bits come to round, and its signals become round. Then the stream
	// writes position. sent says how many commands the stream has taken if it
	// fails.
	Submit(c CopyChain, round uint32, position uint64) (sent int, err error)
	// Passed is the word that the stream writes positions to.
	Passed() *Word
	// Add adds to the 64-bit word at an address, in any memory of the platform.
	// Additions of one process do not miss each other.
	Add(addr, d uint64) error
	// Close gives the stream back. If it has something left to do, the error is a
	// *StuckError, and the stream is used again only once that is done.
	Close() error
}

// CopyChain is steps in the driver's form. It is freed with its last use.
type CopyChain interface {
	// Commands is how many commands the chain takes on a stream.
	Commands() int64
	// Batched is how many copies, and slices of windows, these commands have.
	Batched() int64
}

// CopyStep is one chunk: wait for the gate, copy, signal. A gate or signal of 0
// is left out.
type CopyStep struct {
	Gate, Signal uint64 // addresses of words
	// Anywhere says that the gate may be any number below the round. Otherwise
	// it is at most 2³¹ below.
	Anywhere bool
	Lines    []CopyLine
	Windows  []CopyWindow
}

// CopyLine is one run of bytes.
type CopyLine struct {
	Src, Dst uint64
	Bytes    int64
}

// CopyWindow is slices of rows: Width bytes in each row, rows a pitch apart,
// slices so many rows apart.
type CopyWindow struct {
	Src, Dst             uint64
	Width, Rows, Slices  int64
	SrcPitch, DstPitch   int64 // bytes
	SrcHeight, DstHeight int64 // rows from one slice to the next
}
