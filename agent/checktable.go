package agent

import (
	"bytes"
	"fmt"
	"io"

	"github.com/stallspan/stallspan/agent/internal/check"
)

// printCheck writes a line or two a finding: how much is seen, of what, and what that means. A fix is never broken into
// lines, however long it is: it is there to be copied.
func printCheck(out io.Writer, found []check.Finding) error {
	var text bytes.Buffer
	t := &table{out: &text}
	for _, f := range found {
		t.text(fmt.Sprintf("%-7s %-9s ", f.State, f.Area), f.Says)
		if f.Fix != "" {
			t.line("        fix: " + f.Fix)
		}
	}
	t.line("")
	t.text("", check.Summary(found))
	_, err := out.Write(text.Bytes())
	return err
}
