package compare

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/page"
)

// markup is a comparison as a page without a script: bars of both ledgers on one scale, the spread of the runs, and a
// row for each window.
//
//go:embed comparison.html
var markup string

var comparisonPage = template.Must(template.New("comparison").Funcs(template.FuncMap{
	"bar": newBar, "duration": explain.Duration, "more": More, "part": PartName,
	"text": output.Printable,
}).Parse(markup))

func comparisonHTML(c *comparison) ([]byte, error) {
	var body, out bytes.Buffer
	if err := comparisonPage.Execute(&body, c); err != nil {
		return nil, err
	}
	err := page.WriteStatic(&out, "Comparison", body.String())
	return out.Bytes(), err
}

// Longest is the longer time of both, in seconds.
func (p *Pair) Longest() float64 { return max(p.A.Duration, p.B.Duration) }

// Longest is the longest time of the windows, in seconds.
func (c *comparison) Longest() (seconds float64) {
	for _, p := range c.Windows {
		seconds = max(seconds, p.Longest())
	}
	return seconds
}

// bar is the parts of one time. Without parts it is of one colour.
type bar struct {
	Label string
	Rects []rect
}

// rect is a part of a bar, in units of its picture.
type rect struct {
	Part     string
	X, Width float64
}

// barWidth is the width of a bar for the longest time, in units of its picture.
const barWidth = 1000

func newBar(side string, p *Pair, longest float64) (b bar) {
	duration, of := p.A.Duration, func(x Part) float64 { return x.A }
	if side == "B" {
		duration, of = p.B.Duration, func(x Part) float64 { return x.B }
	}
	if longest <= 0 {
		return b
	}
	b.Label = side + ", " + explain.Duration(duration)
	if len(p.Parts) == 0 {
		b.Rects = []rect{{"unknown", 0, duration / longest * barWidth}}
	}
	at := 0.0
	for _, part := range p.Parts {
		b.Label += ", " + PartName(part.Part) + " " + explain.Duration(of(part))
		width := max(0, of(part)) / longest * barWidth
		b.Rects = append(b.Rects, rect{part.Part, at, width})
		at += width
	}
	return b
}

// dots are the runs on one axis, a dot for each.
type dots struct {
	Label, Low, High string
	Sides            [2]dotsOfSide
}

type dotsOfSide struct {
	Class  string
	Y, Top int // of the dots, and of the median's bar
	X      []float64
	Median float64 // X of the bar
}

// Dots draws the runs.
func (c *comparison) Dots() (d dots) {
	const left, right = 40, 960
	r := c.Runs
	low, high := min(r.A.Least, r.B.Least), max(r.A.Most, r.B.Most)
	d.Low, d.High = explain.Duration(low), explain.Duration(high)
	d.Label = fmt.Sprintf("Durations of %d runs of A and %d runs of B, from %s to %s", len(r.A.Durations),
		len(r.B.Durations), d.Low, d.High)
	x := func(seconds float64) float64 { return left + (seconds-low)/max(high-low, 1e-9)*(right-left) }
	for i, s := range []Spread{r.A, r.B} {
		y := 20 + 30*i
		d.Sides[i] = dotsOfSide{Class: []string{"run-a", "run-b"}[i], Y: y, Top: y - 12, Median: x(s.Median) - 1.5}
		for _, seconds := range s.Durations {
			d.Sides[i].X = append(d.Sides[i].X, x(seconds))
		}
	}
	return d
}
