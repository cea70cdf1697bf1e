package compare

import (
	"fmt"
	"strings"

	"github.com/stallspan/stallspan/agent/internal/output"
)

// markdown is a comparison for a pull request: the answer, and a table of the windows that changed most.
func markdown(c *comparison) string {
	var out strings.Builder
	fmt.Fprintf(&out, "**%s**\n\n", inMarkdown(c.Answer))
	if c.Chance != "" {
		fmt.Fprintf(&out, "%s\n\n", inMarkdown(c.Chance))
	}
	fmt.Fprintf(&out, "A is %s, and B is %s.\n\n", inMarkdown(c.Names[0]), inMarkdown(c.Names[1]))
	if c.Runs != nil {
		out.WriteString("| runs | number | median | least | most |\n|---|--:|--:|--:|--:|\n")
		for _, s := range c.Spreads {
			fmt.Fprintf(&out, "| %s |\n", strings.Join(s[:], " | "))
		}
		fmt.Fprintf(&out, "\nThe median runs: %s\n\n", inMarkdown(c.Finding))
	}
	if len(c.Rows) > 0 {
		out.WriteString("| window | A | B | change | why |\n|---|--:|--:|---|---|\n")
	}
	for _, w := range c.Rows {
		if w.shown {
			fmt.Fprintf(&out, "| %s | %s | %s | %s | %s |\n", inMarkdown(w.Label), w.TookA, w.TookB, w.Changed, inMarkdown(w.Why))
		}
	}
	if c.Left > 0 {
		fmt.Fprintf(&out, "\n%d more windows changed less.\n", c.Left)
	}
	for i, side := range []string{"A", "B"} {
		if c.Only[i] != "" {
			fmt.Fprintf(&out, "\nOnly in %s: %s\n", side, inMarkdown(c.Only[i]))
		}
	}
	return out.String()
}

// markdownEscapes are the characters that mean something within a line or a cell of Markdown, or in HTML.
var markdownEscapes = strings.NewReplacer("\\", "\\\\", "|", "\\|", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[",
	"]", "\\]", "<", "&lt;", ">", "&gt;", "&", "&amp;", "#", "\\#", "~", "\\~", "@", "&#64;")

// inMarkdown makes one line of a text in which nothing is markup. Names come from programs.
func inMarkdown(text string) string { return markdownEscapes.Replace(output.Printable(text)) }
