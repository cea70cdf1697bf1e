package agent

import (
	"fmt"
	"strings"

	"github.com/stallspan/stallspan/agent/internal/compare"
	"github.com/stallspan/stallspan/internal/explain"
)

// markdown is a comparison for a pull request: the answer, and a table of the windows that changed most.
func markdown(nameA, nameB string, c *compare.Comparison, runs *compare.Runs) string {
	var out strings.Builder
	finding := c.Finding
	if runs != nil {
		finding = runs.Finding
	}
	fmt.Fprintf(&out, "**%s**\n\n", inMarkdown(finding))
	if chance := byChance(c, runs); chance != "" {
		fmt.Fprintf(&out, "%s\n\n", inMarkdown(chance))
	}
	fmt.Fprintf(&out, "A is %s, and B is %s.\n\n", inMarkdown(nameA), inMarkdown(nameB))
	if runs != nil {
		out.WriteString("| runs | number | median | least | most |\n|---|--:|--:|--:|--:|\n")
		for _, side := range []struct {
			name string
			compare.Spread
		}{{"A", runs.A}, {"B", runs.B}} {
			fmt.Fprintf(&out, "| %s | %d | %s | %s | %s |\n", side.name, len(side.Durations), explain.Duration(side.Median),
				explain.Duration(side.Least), explain.Duration(side.Most))
		}
		fmt.Fprintf(&out, "\nThe median runs: %s\n\n", inMarkdown(c.Finding))
	}
	if len(c.Windows) > 0 {
		out.WriteString("| window | A | B | change | why |\n|---|--:|--:|---|---|\n")
	}
	for _, p := range topChanges(c.Windows) {
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s |\n", inMarkdown(p.Label), explain.Duration(p.A.Duration),
			explain.Duration(p.B.Duration), p.Verdict(), inMarkdown(p.Why))
	}
	if left := len(c.Windows) - maxRows; left > 0 {
		fmt.Fprintf(&out, "\n%d more windows changed less.\n", left)
	}
	for _, only := range []struct {
		name string
		list []compare.Name
	}{{"A", c.OnlyA}, {"B", c.OnlyB}} {
		if len(only.list) == 0 {
			continue
		}
		var names []string
		for _, n := range only.list {
			names = append(names, n.Label)
		}
		fmt.Fprintf(&out, "\nOnly in %s: %s\n", only.name, inMarkdown(firstOf(names, 8)))
	}
	return out.String()
}

// markdownEscapes are the characters that mean something within a line or a cell of Markdown, or in HTML.
var markdownEscapes = strings.NewReplacer("\\", "\\\\", "|", "\\|", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[",
	"]", "\\]", "<", "&lt;", ">", "&gt;", "&", "&amp;", "#", "\\#", "~", "\\~", "@", "&#64;")

// inMarkdown makes one line of a text in which nothing is markup. Names come from programs.
func inMarkdown(text string) string { return markdownEscapes.Replace(printable(text)) }
