package agent

import (
	"strings"
	"testing"
)

// Shells complete the values of flags, and show no backquotes.
func TestCompletionValues(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"run --fail-on ":      "slow\n",
		"compare --fail-on ":  "slower\n",
		"mark begin --kind m": "model_load\n",
		"--color ":            "auto\nalways\nnever\n",
		"compare --":          "--threshold\tthe percentage above which",
	} {
		v := stallspan(t, append([]string{"__complete"}, strings.Split(args, " ")...)...)
		if code := v.run(); code != 0 || !strings.Contains(v.out.String(), want) || strings.Contains(v.out.String(), "`") {
			t.Errorf("%q: got exit code %d, %q, want %q in it", args, code, v.out.String(), want)
		}
	}
}
