package agent

import (
	"strings"
	"testing"

	"github.com/stallspan/stallspan/agent/internal/cli"
)

// version prints what --version does.
func TestVersionCommand(t *testing.T) {
	t.Parallel()
	flag := string(outputOf(t, "--version"))
	if got := string(outputOf(t, "version")); got != flag || !strings.HasPrefix(got, "stallspan version ") {
		t.Errorf("got %q, want %q", got, flag)
	}
	if v := stallspan(t, "version", "x"); v.run() != cli.ExitUsage {
		t.Errorf("version x: got %q, want a usage error", &v.err)
	}
}
