package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
)

// table prints results for people.
type table struct {
	to    io.Writer
	where *where
}

func newTable(to io.Writer) *table { return &table{to: to} }

const tableRow = "%-12s %-36s %10s  %-23s %-14s %s\n"

func (t *table) print(r result) error {
	if t.where == nil {
		t.where = here()
		if _, err := fmt.Fprintf(t.to, "%s\n%s\n%s\n\n"+tableRow, t.where.Machine, t.where.Date, t.where.Command,
			"figure", "case", "median", "10th to 90th percentile", "unit", "limit"); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(t.to, tableRow, r.Figure, r.Case, digits(r.Median), digits(r.Low)+" to "+digits(r.High), r.Unit, verdict(&r))
	return err
}

// verdict is a result's limit, and whether it holds.
func verdict(r *result) string {
	word := "holds"
	if r.missed() {
		word = "MISSED"
	}
	switch {
	case r.AtLeast != nil:
		return fmt.Sprintf("at least %s: %s", digits(*r.AtLeast), word)
	case r.AtMost != nil:
		return fmt.Sprintf("at most %s: %s", digits(*r.AtMost), word)
	}
	return ""
}

// count is so many of something, in words.
func count(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

// digits shows three digits of v, and all of those before the point.
func digits(v float64) string {
	switch a := math.Abs(v); {
	case a == 0 || math.IsNaN(v):
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	default:
		return strconv.FormatFloat(v, 'f', max(0, 2-int(math.Floor(math.Log10(a)))), 64)
	}
}

// lines prints results for programs, one object a line.
type lines struct {
	encoder *json.Encoder
	where   *where
}

func newLines(to io.Writer) *lines { return &lines{json.NewEncoder(to), here()} }

func (l *lines) print(r result) error {
	r.where = *l.where
	return l.encoder.Encode(r)
}

// read is the results in a stream that lines has printed.
func read(from io.Reader) (all []result, err error) {
	for d := json.NewDecoder(from); ; {
		var r result
		switch err := d.Decode(&r); err {
		case nil:
			all = append(all, r)
		case io.EOF:
			return all, nil
		default:
			return nil, fmt.Errorf("result %d: %w", len(all)+1, err)
		}
	}
}
