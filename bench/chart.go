package main

import (
	"fmt"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	_ "gonum.org/v1/plot/vg/vgimg" // writes .png
	_ "gonum.org/v1/plot/vg/vgsvg" // writes .svg
)

// drawGrowth draws the growth figures of a file of results.
func drawGrowth(picture, results string) error {
	all, err := readFile(results)
	if err != nil {
		return err
	}
	lines := map[string]plotter.XYs{}
	var names []string
	for _, r := range all {
		if r.Figure != "growth" || r.X == 0 {
			continue
		}
		name, _, _ := strings.Cut(r.Case, ":")
		if lines[name] == nil {
			names = append(names, name)
		}
		lines[name] = append(lines[name], plotter.XY{X: r.X, Y: r.Median})
	}
	if len(names) == 0 {
		return fmt.Errorf("%s has no growth figures; measure them with -run growth -json", results)
	}
	p := plot.New()
	p.Title.Text = "Growth (medians; the dashed line is linear)"
	p.X.Label.Text, p.Y.Label.Text = "chunks × peers, over all ranks", "µs"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogTicks{Prec: -1}, plot.LogTicks{Prec: -1}
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	for i, name := range names {
		line, points, err := plotter.NewLinePoints(lines[name])
		if err != nil {
			return err
		}
		line.Color, points.Color, points.Shape = plotutil.Color(i), plotutil.Color(i), plotutil.Shape(i)
		p.Add(line, points)
		p.Legend.Add(name, line, points)
	}
	last := lines[names[0]][len(lines[names[0]])-1]
	straight, err := plotter.NewLine(plotter.XYs{{X: last.X / 1e3, Y: last.Y / 1e3}, last})
	if err != nil {
		return err
	}
	straight.Dashes = plotutil.Dashes(1)
	p.Add(straight)
	return p.Save(18*vg.Centimeter, 12*vg.Centimeter, picture)
}
