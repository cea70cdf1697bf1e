package compare

import (
	"fmt"
	"strings"

	"github.com/stallspan/stallspan/agent/internal/output"
)

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

// markdownEscapes are the characters that mean something within a line or a cell of Markdown, or in HTML.
var markdownEscapes = strings.NewReplacer("\\", "\\\\", "|", "\\|", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[",
	"]", "\\]", "<", "&lt;", ">", "&gt;", "&", "&amp;", "#", "\\#", "~", "\\~", "@", "&#64;")

// inMarkdown makes one line of a text in which nothing is markup. Names come from programs.
func inMarkdown(text string) string { return markdownEscapes.Replace(output.Printable(text)) }
