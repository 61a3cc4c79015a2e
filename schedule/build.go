package schedule

// Tile is the part of a window that one step of a producer writes, in rows and
// columns of elements. Tiles at the window's edges are cut off there.
type Tile struct{ Rows, Cols int }

// Options are what every builder takes; the zero value serves.
type Options struct {
	// Order is the producer's own mapping: the tile, counted row by row, that
	// it writes in each step. Nil is the step itself.
	Order func(step int) int
	// LargestCopy is the most bytes of one copy; 0 is DefaultLargestCopy.
	LargestCopy int64
	// Writers is how many marks a step gets, 0 standing for 1: the programs
	// that write one tile, or one row block, together.
	Writers int
}

// largestSchedule bounds a builder's tiles and regions: far more than a ring
// holds, and few enough that a wrong figure does not eat the host's memory.
const largestSchedule = 1 << 24

// Whole sends the window as one chunk, which each of so many writers marks
// once, when it has written everything. It takes no notice of the options'
// Order and Writers. The error is an *Error.
func Whole(w Window, writers int, o Options) (Schedule, error) {
	if writers < 1 {
		return nil, wrong(ErrWriters, int64(writers), 1, "%d writers; a chunk needs at least 1", writers)
	}
	o.Order, o.Writers = nil, writers
	return Chunks(w, max(w.Rows, 1), o)
}

// Chunks sends the window in blocks of rowsPerChunk rows, each a chunk and a
// step of the producer; the last may be shorter. The error is an *Error.
func Chunks(w Window, rowsPerChunk int, o Options) (Schedule, error) {
	if rowsPerChunk < 1 {
		return nil, wrong(ErrSize, int64(rowsPerChunk), 1, "%d rows per chunk; it must be at least 1", rowsPerChunk)
	}
	return TileChunks(w, Tile{rowsPerChunk, max(w.Cols, 1)}, 1, o)
}

// TileChunks sends what a tiled producer writes: each chunk holds the tiles of
// stepsPerChunk consecutive steps (the last may hold fewer) and is complete
// when each step has marked it. Tiles of one chunk that lie side by side share
// a copy where that makes fewer copies. The error is an *Error; it wraps
// ErrOrder when the options' Order does not name every tile once.
func TileChunks(w Window, t Tile, stepsPerChunk int, o Options) (Schedule, error) {
	b, err := newBuilder(w, t, stepsPerChunk, o)
	if err != nil {
		return nil, err
	}
	stepsPerChunk = min(stepsPerChunk, b.tiles)
	s := make(Schedule, 0, (b.tiles-1)/stepsPerChunk+1)
	for step := 0; step < b.tiles; step += stepsPerChunk {
		c, err := b.chunk(step, min(stepsPerChunk, b.tiles-step))
		if err != nil {
			err.Chunk = len(s)
			return nil, err
		}
		s = append(s, c)
	}
	return s, nil
}

// builder makes the chunks of one window.
type builder struct {
	window  Window
	tile    Tile
	tiles   int // in all
	across  int // tiles in one row band
	writers int // marks per step
	largest int64
	order   func(int) int
	seen    []int32 // for each tile, 1 + the step that writes it
	regions int64   // so far
}

func newBuilder(w Window, t Tile, steps int, o Options) (*builder, error) {
	if err := w.check(); err != nil {
		return nil, err
	}
	if t.Rows < 1 || t.Cols < 1 {
		return nil, wrong(ErrSize, int64(min(t.Rows, t.Cols)), 1, "a tile of %d×%d elements; both must be at least 1", t.Rows, t.Cols)
	}
	if steps < 1 {
		return nil, wrong(ErrSize, int64(steps), 1, "%d steps per chunk; it must be at least 1", steps)
	}
	if o.LargestCopy < 0 {
		return nil, wrong(ErrCopy, o.LargestCopy, 0, "a largest copy of %d bytes; it must be at least 1, or 0 for %d", o.LargestCopy, DefaultLargestCopy)
	}
	across, down := ceil(int64(w.Cols), int64(t.Cols)), ceil(int64(w.Rows), int64(t.Rows))
	tiles := mul(across, down)
	if tiles > largestSchedule {
		return nil, wrong(ErrSize, tiles, largestSchedule, "%d×%d elements in tiles of %d×%d are %d tiles, of which a schedule holds at most %d; use larger tiles",
			w.Rows, w.Cols, t.Rows, t.Cols, tiles, largestSchedule)
	}
	b := &builder{window: w, tile: t, tiles: int(tiles), across: int(across), writers: o.Writers, largest: o.LargestCopy, order: o.Order}
	if b.writers == 0 {
		b.writers = 1
	}
	if marks := mul(int64(b.writers), min(int64(steps), tiles)); b.writers < 0 || marks > LargestWriters {
		return nil, wrong(ErrWriters, int64(b.writers), LargestWriters, "%d writers for each of the %d steps of a chunk; it is completed by 1 to %d marks",
			b.writers, min(int64(steps), tiles), LargestWriters)
	}
	if b.largest == 0 {
		b.largest = DefaultLargestCopy
	}
	if b.order == nil {
		b.order = func(step int) int { return step }
	}
	b.seen = make([]int32, tiles)
	return b, nil
}

// chunk holds the tiles of so many steps.
func (b *builder) chunk(first, steps int) (Chunk, *Error) {
	tiles := make([]rect, 0, steps)
	for step := first; step < first+steps; step++ {
		t := b.order(step)
		if t < 0 || t >= b.tiles {
			return Chunk{}, wrong(ErrOrder, int64(t), int64(b.tiles), "the order gives tile %d for step %d; there are tiles 0 to %d", t, step, b.tiles-1)
		}
		if b.seen[t] != 0 {
			return Chunk{}, wrong(ErrOrder, int64(t), int64(b.tiles), "the order gives tile %d for step %d and for step %d; each of the %d tiles is written in one step",
				t, b.seen[t]-1, step, b.tiles)
		}
		b.seen[t] = int32(step) + 1
		tiles = append(tiles, b.rect(t))
	}
	parts, n := b.fewest(tiles)
	if b.regions += n; b.regions > largestSchedule {
		return Chunk{}, wrong(ErrSize, b.regions, largestSchedule, "copies of at most %d bytes make more than %d of them; use larger copies", b.largest, largestSchedule)
	}
	c := Chunk{Regions: make([]Region, 0, n), Writers: steps * b.writers}
	for _, p := range parts {
		c.Regions = b.window.region(p).split(c.Regions, b.largest)
	}
	return c, nil
}

// rect is where tile t lies, cut off at the window's edges.
func (b *builder) rect(t int) rect {
	r, c := t/b.across*b.tile.Rows, t%b.across*b.tile.Cols
	return rect{r, r + min(b.tile.Rows, b.window.Rows-r), c, c + min(b.tile.Cols, b.window.Cols-c)}
}
