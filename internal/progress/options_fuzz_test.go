package progress

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// A pattern of the user is refused in one line that names a place in it, or finds epochs in any line of output.
func FuzzPattern(f *testing.F) {
	f.Add(`epoch (\d+)`, "epoch 3")
	f.Add(`(?P<total>\d+) of`, "7 of")
	for _, bad := range []string{"(", "a)", "[z-a]", `x\`, "(?P<>)", "a{1001}", "", "x*", `[\]`, `\Q(`, "(?i"} {
		f.Add(bad, "x")
	}
	f.Fuzz(func(t *testing.T, expr, line string) {
		re, err := compile("--epoch-pattern", expr)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\n\x1b") && !strings.ContainsAny(expr, "\n\x1b") {
				t.Errorf("%q: got error %q, want one line", expr, err)
			}
			if !utf8.ValidString(err.Error()) {
				t.Errorf("%q: got error %q, want UTF-8", expr, err)
			}
			return
		}
		_ = firstGroup(re)
		_ = re.FindStringSubmatchIndex(line)
	})
}
