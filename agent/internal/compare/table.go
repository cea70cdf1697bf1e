package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/explain"
)

// comparison is what the terminal, Markdown and HTML show of a comparison.
type comparison struct {
	*Comparison
	runs    *Runs       // nil for one of each side
	names   [2]string   // of the reports of A and of B
	answer  string      // the finding of all runs, or else of the pair
	chance  string      // a warning where there is one run of each side, and a window of them differs; else ""
	spreads [][5]string // side, number of runs, median, least, most
	rows    []windowRow // of all windows, in the order of A
	left    int         // windows that are in no table of the terminal and of Markdown
	only    [2]string   // names of the windows that only A or B has
}

// row is a window in both reports.
type windowRow struct {
	*Pair
	a, b, change, verdict string
	shown                 bool // among the windows that changed most
	explained             bool // its parts and reason differ from those of the shown row before it
}

const maxOnly = 8 // windows of one report alone that are named

func newComparison(nameA, nameB string, c *Comparison, runs *Runs) *comparison {
	v := &comparison{Comparison: c, runs: runs, names: [2]string{nameA, nameB}, answer: c.Finding,
		left: max(0, len(c.Windows)-output.MaxRows), only: [2]string{namesOf(c.OnlyA), namesOf(c.OnlyB)}}
	if runs != nil {
		v.answer = runs.Finding
		for i, s := range []Spread{runs.A, runs.B} {
			v.spreads = append(v.spreads, [5]string{string(rune('A' + i)), strconv.Itoa(len(s.Durations)),
				explain.Duration(s.Median), explain.Duration(s.Least), explain.Duration(s.Most)})
		}
	}
	shown := topChanges(c.Windows)
	var previous *Pair
	for i, p := range c.Windows {
		row := windowRow{Pair: p, a: explain.Duration(p.A.Duration), b: explain.Duration(p.B.Duration), change: p.Verdict(),
			verdict: string(p.A.Verdict), shown: shown[i]}
		if p.A.Verdict != p.B.Verdict {
			row.verdict += " -> " + string(p.B.Verdict)
		}
		if row.shown {
			row.explained = previous == nil || !alike(previous, p)
			previous = p
		}
		if runs == nil && (p.Change == Faster || p.Change == Slower) {
			v.chance = "One run of each: this may be chance. Use --before and --after with four runs each."
		}
		v.rows = append(v.rows, row)
	}
	return v
}

func namesOf(windows []Name) string {
	var names []string
	for _, n := range windows {
		names = append(names, n.Label)
	}
	return output.FirstOf(names, maxOnly)
}

// topChanges marks the windows with the largest changes.
func topChanges(windows []*Pair) []bool {
	order := make([]int, len(windows))
	for i := range order {
		order[i] = i
	}
	weight := func(i int) float64 { // seconds
		if windows[i].Change == Same {
			return 0
		}
		return math.Abs(windows[i].Difference)
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(weight(j), weight(i)) })
	shown := make([]bool, len(windows))
	for _, i := range order[:min(output.MaxRows, len(order))] {
		shown[i] = true
	}
	return shown
}

// alike reports whether two windows changed in the same way, for the same reason.
func alike(p, q *Pair) bool {
	return p.Kind == q.Kind && p.Change == q.Change && p.ExplainedBy == q.ExplainedBy && p.Ledger == q.Ledger &&
		p.A.Verdict == q.A.Verdict && p.B.Verdict == q.B.Verdict && len(p.Notes) == len(q.Notes)
}

// changeWidth holds "about the same", the longest change.
const changeWidth = 14

// comparisonTable writes a comparison for a person.
type comparisonTable struct{ *output.Table }

func (t comparisonTable) compared(label, a, b, change, verdict string) {
	t.Line(fmt.Sprintf("%s %8s %8s  %s %s", output.Fit(label, output.LabelWidth), a, b, output.Fit(change,
		changeWidth), verdict))
}

// comparison writes one row for each window, and below a changed one its parts and the reason. Among windows in a row
// with the same change only the first is explained.
func (t comparisonTable) comparison(c *comparison) {
	t.Line("")
	t.Text("A: ", c.names[0])
	t.Text("B: ", c.names[1])
	t.Line("")
	if c.runs != nil {
		t.Line(fmt.Sprintf("%s %8s %8s %8s", output.Fit("", output.LabelWidth), "median", "least", "most"))
		for _, s := range c.spreads {
			t.Line(fmt.Sprintf("%s %8s %8s %8s", output.Fit(s[0]+", "+s[1]+" runs", output.LabelWidth), s[2], s[3], s[4]))
		}
		t.Line("")
		t.Text("", c.answer)
		t.Line("")
		t.Text("", "The median runs, window by window:")
		t.Line("")
	}
	if len(c.rows) > 0 {
		t.compared("window", "A", "B", "change", "verdict")
	}
	for i := range c.rows {
		if c.rows[i].shown {
			t.comparedWindow(&c.rows[i])
		}
	}
	if c.left > 0 {
		t.Line(fmt.Sprintf("... %d more, which changed less: see --json ...", c.left))
	}
	for i, side := range []string{"A", "B"} {
		t.Text("only in "+side+": ", c.only[i])
	}
	t.Line("")
	t.Text("", c.Finding)
	t.Text("", c.chance)
	if c.Whole != nil && len(c.rows) > 1 {
		for _, note := range c.Whole.Notes {
			t.Text("", note)
		}
	}
}

func (t comparisonTable) comparedWindow(w *windowRow) {
	t.compared(explain.Indented(w.Label, w.within), w.a, w.b, w.change, w.verdict)
	if !w.explained {
		return
	}
	if w.Why != "" {
		const zero = 0.5e-6 // seconds: rounds to 0
		for _, p := range w.Parts {
			if p.A >= zero || p.B >= zero {
				t.compared("  "+PartName(p.Part), explain.Duration(p.A), explain.Duration(p.B), More(p.Difference), "")
			}
		}
		t.Text("  Why: ", w.Why+".")
	}
	for _, note := range w.Notes {
		t.Text("  ", note)
	}
}

// markdown is a comparison for a pull request: the answer, and a table of the windows that changed most.
func markdown(c *comparison) string {
	var out strings.Builder
	fmt.Fprintf(&out, "**%s**\n\n", inMarkdown(c.answer))
	if c.chance != "" {
		fmt.Fprintf(&out, "%s\n\n", inMarkdown(c.chance))
	}
	fmt.Fprintf(&out, "A is %s, and B is %s.\n\n", inMarkdown(c.names[0]), inMarkdown(c.names[1]))
	if c.runs != nil {
		out.WriteString("| runs | number | median | least | most |\n|---|--:|--:|--:|--:|\n")
		for _, s := range c.spreads {
			fmt.Fprintf(&out, "| %s |\n", strings.Join(s[:], " | "))
		}
		fmt.Fprintf(&out, "\nThe median runs: %s\n\n", inMarkdown(c.Finding))
	}
	if len(c.rows) > 0 {
		out.WriteString("| window | A | B | change | why |\n|---|--:|--:|---|---|\n")
	}
	for _, w := range c.rows {
		if w.shown {
			fmt.Fprintf(&out, "| %s | %s | %s | %s | %s |\n", inMarkdown(w.Label), w.a, w.b, w.change, inMarkdown(w.Why))
		}
	}
	if c.left > 0 {
		fmt.Fprintf(&out, "\n%d more windows changed less.\n", c.left)
	}
	for i, side := range []string{"A", "B"} {
		if c.only[i] != "" {
			fmt.Fprintf(&out, "\nOnly in %s: %s\n", side, inMarkdown(c.only[i]))
		}
	}
	return out.String()
}

// markdownEscapes are the characters that mean something within a line or a cell of Markdown, or in HTML, where ">"
// alone means nothing.
var markdownEscapes = strings.NewReplacer("\\", "\\\\", "|", "\\|", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[",
	"]", "\\]", "<", "&lt;", "&", "&amp;", "#", "\\#", "~", "\\~", "@", "&#64;")

// inMarkdown makes one line of a text in which nothing is markup. Names come from programs.
func inMarkdown(text string) string { return markdownEscapes.Replace(output.Printable(text)) }
