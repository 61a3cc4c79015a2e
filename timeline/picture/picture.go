package picture

import (
	"errors"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/triggeredplans/sluice/timeline"
)

// ErrNothing says that there is nothing to draw.
var ErrNothing = errors.New("picture: no round with a marked chunk was recorded; set rank.Config's Timeline and run a round")

// FormatError says that a picture cannot be written in a file's format.
type FormatError struct{ File string }

func (e *FormatError) Error() string {
	return fmt.Sprintf("picture: %s has no ending that says how to write it; name it .svg or .png", e.File)
}

// CheckFile says whether a picture can be written to a file of that name. The
// error is a *FormatError.
func CheckFile(file string) error {
	if !slices.Contains([]string{".svg", ".png"}, filepath.Ext(file)) {
		return &FormatError{File: file}
	}
	return nil
}

// Size of a picture; every track adds to the height.
const (
	width      = 26 * vg.Centimeter
	baseHeight = 3 * vg.Centimeter
	perTrack   = 0.55 * vg.Centimeter
	margin     = 0.4 * vg.Centimeter
	maxHeight  = 100 * vg.Centimeter
)

// Save draws one round of a plan on all ranks into an SVG or PNG file. The
// error is a *FormatError, ErrNothing, or that of writing the file.
func Save(file string, rounds []timeline.Round) error {
	if err := CheckFile(file); err != nil {
		return err
	}
	tracks, from := layOut(rounds)
	if len(tracks) == 0 {
		return ErrNothing
	}
	p := plot.New()
	p.Title.Text = fmt.Sprintf("Round %d of %s: %.0f%% of the copying went on while chunks were still being computed",
		rounds[0].Round, rounds[0].Plan, 100*timeline.Overlap(rounds))
	p.Title.TextStyle.Font.Size = vg.Points(11)
	p.X.Label.Text = "ms since the round was started"
	p.Add(&chart{tracks: tracks, from: from})
	p.Y.Tick.Marker = plot.TickerFunc(func(float64, float64) (ticks []plot.Tick) {
		for i, t := range tracks {
			ticks = append(ticks, plot.Tick{Value: -float64(i), Label: t.name})
		}
		return ticks
	})
	p.Y.Tick.Length, p.Y.LineStyle.Width = 0, 0
	return Write(file, p, width, min(baseHeight+perTrack*vg.Length(len(tracks)), maxHeight))
}

// Write draws any plot of so much width and height into an SVG or PNG file. The
// error is a *FormatError, or that of writing the file.
func Write(file string, p *plot.Plot, width, height vg.Length) error {
	if err := CheckFile(file); err != nil {
		return err
	}
	canvas, err := draw.NewFormattedCanvas(width, height, strings.TrimPrefix(filepath.Ext(file), "."))
	if err != nil {
		return err
	}
	all := draw.New(canvas)
	all.SetColor(color.White)
	all.Fill(all.Rectangle.Path())
	p.Draw(draw.Crop(all, margin, -margin, margin, -margin))
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = canvas.WriteTo(f)
	return errors.Join(err, f.Close())
}

// Last picks the rounds to draw from what was recorded: of the plan with the
// most chunks the last round that every rank has recorded.
func Last(recorded []timeline.Round) []timeline.Round {
	type key struct {
		world, plan string
		round       uint64
	}
	groups := map[key][]timeline.Round{}
	ranks := map[int]bool{}
	for _, r := range recorded {
		k := key{r.World, r.Plan, r.Round}
		groups[k] = append(groups[k], r)
		ranks[r.Rank] = true
	}
	var best []timeline.Round
	for _, g := range groups {
		if len(g) == len(ranks) && later(g, best) {
			best = g
		}
	}
	return best
}

// later says whether a is to be preferred to b: the larger plan, then the
// later round.
func later(a, b []timeline.Round) bool {
	if n, m := chunks(a), chunks(b); n != m {
		return n > m
	}
	return len(b) == 0 || a[0].Round > b[0].Round || a[0].Round == b[0].Round && a[0].Plan > b[0].Plan
}

func chunks(rounds []timeline.Round) (n int) {
	for i := range rounds {
		n += len(rounds[i].Chunks)
	}
	return n
}

// kind is what a bar stands for.
type kind int

const (
	computing kind = iota
	copying
	arriving
)

func (k kind) name() string {
	return [...]string{"computing a chunk", "copying it", "its arrival"}[k]
}

// color alternates, so that neighbouring chunks are told apart.
func (k kind) color(chunk int) color.Color {
	return [...][2]color.RGBA{
		{{0xe6, 0x8a, 0x2e, 0xff}, {0xf2, 0xb3, 0x66, 0xff}},
		{{0x2b, 0x6c, 0xb0, 0xff}, {0x63, 0x9f, 0xd9, 0xff}},
		{{0x1d, 0x1d, 0x1d, 0xff}, {0x1d, 0x1d, 0x1d, 0xff}},
	}[k][chunk&1]
}

// bar is something that went on for a chunk, or happened if it took no time.
type bar struct {
	kind     kind
	chunk    int
	from, to time.Duration
}

// row is one line of the picture.
type row struct {
	name string
	bars []bar
}

// layOut arranges the rounds in rows, and says when the first of them began.
func layOut(rounds []timeline.Round) (rows []row, from time.Duration) {
	rounds = slices.Clone(rounds)
	slices.SortFunc(rounds, func(a, b timeline.Round) int { return a.Rank - b.Rank })
	for i := range rounds {
		r := &rounds[i]
		compute := row{name: fmt.Sprintf("rank %d computes", r.Rank)}
		for _, s := range r.Computed() {
			compute.bars = append(compute.bars, bar{computing, s.ID, s.From, s.To})
		}
		if len(compute.bars) == 0 {
			continue
		}
		if start := compute.bars[0].from; from == 0 || start < from {
			from = start
		}
		rows = append(rows, compute)
		rows = append(rows, copies(r)...)
	}
	return rows, from
}

// copies are the rows of a rank's queues.
func copies(r *timeline.Round) (rows []row) {
	for i := range r.Chunks[0].Copies {
		peer := row{name: fmt.Sprintf("to rank %d", r.Chunks[0].Copies[i].Peer)}
		for _, c := range r.Chunks {
			k := c.Copies[i]
			if k.Began > 0 && k.Ended > 0 {
				peer.bars = append(peer.bars, bar{copying, c.ID, k.Began, k.Ended})
			}
			if k.Arrived > 0 {
				peer.bars = append(peer.bars, bar{arriving, c.ID, k.Arrived, k.Arrived})
			}
		}
		rows = append(rows, peer)
	}
	return rows
}
