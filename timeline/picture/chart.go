package picture

import (
	"fmt"
	"image/color"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	_ "gonum.org/v1/plot/vg/vgimg" // writes .png
	_ "gonum.org/v1/plot/vg/vgsvg" // writes .svg
)

// chart draws rows of bars, from the top down.
type chart struct {
	tracks []row
	from   time.Duration
}

// ms is a time in the picture.
func (c *chart) ms(d time.Duration) float64 { return float64(d-c.from) / float64(time.Millisecond) }

// DataRange implements plot.DataRanger.
func (c *chart) DataRange() (xmin, xmax, ymin, ymax float64) {
	for _, t := range c.tracks {
		for _, b := range t.bars {
			xmax = max(xmax, c.ms(b.to))
		}
	}
	return 0, xmax, -float64(len(c.tracks)) + 0.5, 1.5 // the key is above the rows
}

// half is half of a bar's height; rows are 1 apart.
const half = 0.36

// Plot implements plot.Plotter.
func (c *chart) Plot(canvas draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&canvas)
	c.key(canvas, x(p.X.Min), y(1))
	for i, t := range c.tracks {
		low, high := y(-float64(i)-half), y(-float64(i)+half)
		if t.bars[0].kind == computing && i > 0 {
			line := draw.LineStyle{Color: computing.color(0), Width: vg.Points(0.4)}
			canvas.StrokeLine2(line, x(p.X.Min), y(-float64(i)+0.5), x(p.X.Max), y(-float64(i)+0.5))
		}
		for _, b := range t.bars {
			from, to := x(c.ms(b.from)), x(c.ms(b.to))
			if b.kind == arriving {
				canvas.StrokeLine2(draw.LineStyle{Color: b.kind.color(0), Width: vg.Points(0.8)}, to, low, to, high)
				continue
			}
			box(canvas, b.kind, b.chunk, from, max(to, from+vg.Points(0.3)), low, high)
		}
	}
}

// label is the text in a bar that has room for it.
var label = text.Style{
	Color: color.White, Font: font.From(plot.DefaultFont, 7), XAlign: draw.XCenter, YAlign: draw.YCenter, Handler: plot.DefaultTextHandler,
}

func box(canvas draw.Canvas, k kind, chunk int, x0, x1, y0, y1 vg.Length) {
	canvas.FillPolygon(k.color(chunk), []vg.Point{{X: x0, Y: y0}, {X: x1, Y: y0}, {X: x1, Y: y1}, {X: x0, Y: y1}})
	name := fmt.Sprint(chunk)
	if label.Width(name)+vg.Points(2) < x1-x0 {
		canvas.FillText(label, vg.Point{X: (x0 + x1) / 2, Y: (y0 + y1) / 2}, name)
	}
}

// key explains the bars, from x on at height y.
func (c *chart) key(canvas draw.Canvas, x, y vg.Length) {
	const high, wide = 0.16 * vg.Centimeter, 0.5 * vg.Centimeter
	style := label
	style.Color, style.XAlign, style.Font = color.Black, draw.XLeft, font.From(plot.DefaultFont, 9)
	for _, k := range []kind{computing, copying, arriving} {
		if k == arriving {
			canvas.StrokeLine2(draw.LineStyle{Color: k.color(0), Width: vg.Points(0.8)}, x+wide, y-high, x+wide, y+high)
		} else {
			box(canvas, k, 0, x, x+wide, y-high, y+high)
			box(canvas, k, 1, x+wide, x+2*wide, y-high, y+high)
		}
		canvas.FillText(style, vg.Point{X: x + 2.4*wide, Y: y}, k.name())
		x += 3.4*wide + style.Width(k.name())
	}
}
