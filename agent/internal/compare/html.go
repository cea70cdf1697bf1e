package compare

import (
	"bytes"
	"fmt"
	"html"
	"strings"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/page"
)

// htmlPage is a comparison as a page without a script: bars of both ledgers on one scale, the spread of the runs,
// and a row for each window.
type htmlPage struct{ strings.Builder }

func comparisonHTML(c *comparison) ([]byte, error) {
	var p htmlPage
	p.put("<header><h1>Comparison</h1>")
	p.put(`<p class="answer">%s</p>`, c.answer)
	if c.chance != "" {
		p.put("<p>%s</p>", c.chance)
	}
	p.put(`<p class="muted">A: %s<br>B: %s</p></header>`, c.names[0], c.names[1])
	if c.runs != nil {
		p.runs(c)
	}
	if c.Whole != nil {
		p.put("<section><h2>Where the time went</h2>")
		p.ledger(c.Whole, max(c.Whole.A.Duration, c.Whole.B.Duration))
		if c.runs != nil {
			p.put("<p>%s</p>", c.Finding)
		}
		for _, note := range c.Whole.Notes {
			p.put("<p>%s</p>", note)
		}
		p.put("</section>")
	}
	p.windows(c)
	var out bytes.Buffer
	err := page.WriteStatic(&out, "Comparison", p.String())
	return out.Bytes(), err
}

// put writes markup with texts in it, which are escaped.
func (p *htmlPage) put(markup string, texts ...any) {
	for i, text := range texts {
		if s, ok := text.(string); ok {
			texts[i] = html.EscapeString(output.Printable(s))
		}
	}
	fmt.Fprintf(p, markup+"\n", texts...)
}

// table begins a table that scrolls on narrow screens, also with the keyboard.
func (p *htmlPage) table(label, class string, columns ...string) {
	p.put(`<div class="scroll" tabindex="0" role="region" aria-label="%s"><table class="%s">`, label, class)
	p.put("<thead><tr>")
	for _, c := range columns {
		p.put(`<th scope="col">%s</th>`, c)
	}
	p.put("</tr></thead><tbody>")
}

// barWidth is the width of a bar for the longest time, in units of its picture.
const barWidth = 1000

// ledger draws the two ledgers of a pair, and their parts as a table.
func (p *htmlPage) ledger(pair *Pair, longest float64) {
	for _, side := range []struct {
		name     string
		duration float64
		part     func(Part) float64
	}{
		{"A", pair.A.Duration, func(x Part) float64 { return x.A }},
		{"B", pair.B.Duration, func(x Part) float64 { return x.B }},
	} {
		p.put("<p>%s: %s</p>", side.name, explain.Duration(side.duration))
		p.bar(side.name, side.duration, longest, pair.Parts, side.part)
	}
	if len(pair.Parts) == 0 {
		return
	}
	p.table("Parts", "", "Part", "A", "B", "Difference")
	for _, part := range pair.Parts {
		p.put(`<tr><th scope="row"><span class="swatch %s" aria-hidden="true"></span>%s</th>`, part.Part,
			PartName(part.Part))
		p.put("<td>%s</td><td>%s</td><td>%s</td></tr>", explain.Duration(part.A), explain.Duration(part.B),
			More(part.Difference))
	}
	p.put("</tbody></table></div>")
}

// bar draws the parts of one time. Without parts it is of one colour.
func (p *htmlPage) bar(name string, duration, longest float64, parts []Part, of func(Part) float64) {
	if longest <= 0 {
		return
	}
	label := name + ", " + explain.Duration(duration)
	for _, part := range parts {
		label += ", " + PartName(part.Part) + " " + explain.Duration(of(part))
	}
	p.put(`<svg class="pair" viewBox="0 0 %d 22" preserveAspectRatio="none" role="img" aria-label="%s">`, barWidth, label)
	if len(parts) == 0 {
		parts = []Part{{Part: "unknown"}}
		of = func(Part) float64 { return duration }
	}
	at := 0.0
	for _, part := range parts {
		width := max(0, of(part)) / longest * barWidth
		p.put(`<rect class="fill-%s" x="%.2f" y="2" width="%.2f" height="18"/>`, part.Part, at, width)
		at += width
	}
	p.put("</svg>")
}

// runs draws a dot for each run, on one axis.
func (p *htmlPage) runs(c *comparison) {
	const left, right, height = 40, 960, 70
	r := c.runs
	low, high := min(r.A.Least, r.B.Least), max(r.A.Most, r.B.Most)
	span := max(high-low, 1e-9)
	x := func(d float64) float64 { return left + (d-low)/span*(right-left) }
	p.put("<section><h2>Runs</h2>")
	p.put(`<svg viewBox="0 0 %d %d" role="img"`, barWidth, height)
	p.put(`aria-label="Durations of %d runs of A and %d runs of B, from %s to %s">`, len(r.A.Durations), len(r.B.Durations), explain.Duration(low), explain.Duration(high))
	for i, side := range []struct {
		class string
		Spread
	}{{"run-a", r.A}, {"run-b", r.B}} {
		y := 20 + 30*i
		p.put(`<line class="axis" x1="%d" y1="%d" x2="%d" y2="%d"/>`, left, y, right, y)
		for _, d := range side.Durations {
			p.put(`<circle class="%s" cx="%.2f" cy="%d" r="6" fill-opacity="0.7"/>`, side.class, x(d), y)
		}
		p.put(`<rect class="%s" x="%.2f" y="%d" width="3" height="24"/>`, side.class, x(side.Median)-1.5, y-12)
	}
	p.put("</svg>")
	p.put(`<p class="muted">Each dot is a run, and each bar a median: %s on the left, %s on the right.</p>`,
		explain.Duration(low), explain.Duration(high))
	p.table("Runs", "", "Runs", "Number", "Median", "Least", "Most")
	for i, s := range c.spreads {
		p.put(`<tr><th scope="row">%s</th><td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>`,
			s[0]+[]string{", above", ", below"}[i], s[1], s[2], s[3], s[4])
	}
	p.put("</tbody></table></div></section>")
}

// windows has a row for each window that both reports have, in the order of A, and the names of the others.
func (p *htmlPage) windows(c *comparison) {
	if len(c.rows) > 0 {
		longest := 0.0
		for _, w := range c.rows {
			longest = max(longest, w.A.Duration, w.B.Duration)
		}
		p.put("<section><h2>Windows</h2>")
		p.table("Windows", "compared", "Window", "A above B", "A", "B", "Change", "Why")
		for _, w := range c.rows {
			p.put(`<tr><th scope="row">%s</th><td>`, w.Label)
			p.bar("A", w.A.Duration, longest, w.Parts, func(x Part) float64 { return x.A })
			p.bar("B", w.B.Duration, longest, w.Parts, func(x Part) float64 { return x.B })
			p.put(`</td><td>%s</td><td>%s</td><td>%s</td><td>%s</td></tr>`, w.a, w.b, w.change, w.Why)
		}
		p.put("</tbody></table></div></section>")
	}
	for i, side := range []string{"A", "B"} {
		if c.only[i] != "" {
			p.put("<p>Only in %s: %s</p>", side, c.only[i])
		}
	}
}
