package main

import (
	"fmt"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"github.com/triggeredplans/sluice/timeline/picture"
)

// curve is the loss of each step of a run.
type curve struct {
	name   string
	losses []float64
}

// colors and dashes keep curves apart that lie on each other.
var (
	colors = []color.Color{color.RGBA{0xe6, 0x8a, 0x2e, 0xff}, color.RGBA{0x2b, 0x6c, 0xb0, 0xff}, color.RGBA{0x4a, 0x9e, 0x5c, 0xff}}
	widths = []vg.Length{vg.Points(3), vg.Points(1.5), vg.Points(0.6)}
)

// drawCurves writes a picture of the losses of runs that began at a step.
func drawCurves(file string, first int, curves []curve) error {
	p := plot.New()
	p.Title.Text = "Loss of a character-level model"
	p.X.Label.Text, p.Y.Label.Text = "step", "nats per character"
	p.Y.Min = 0
	p.Add(plotter.NewGrid())
	p.Legend.Top = true
	for i, c := range curves {
		points := make(plotter.XYs, len(c.losses))
		for j, l := range c.losses {
			points[j] = plotter.XY{X: float64(first + j), Y: l}
		}
		line, err := plotter.NewLine(points)
		if err != nil {
			return fmt.Errorf("the losses of %s cannot be drawn: %w", c.name, err)
		}
		line.Color, line.Width = colors[i%len(colors)], widths[i%len(widths)]
		p.Add(line)
		p.Legend.Add(c.name, line)
	}
	p.Y.Min = 0
	return picture.Write(file, p, 18*vg.Centimeter, 11*vg.Centimeter)
}
