package locate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A process belongs to its container, or else to its user.
func TestClient(t *testing.T) {
	l := New("/", "", false)
	if os.Geteuid() != 0 {
		if got := l.Client(1); got != "uid 0" {
			t.Errorf("process 1: got %q, want uid 0", got)
		}
	}
	if in := ContainerOf("/", "/", os.Getpid()); in == "" {
		if got := l.Client(os.Getpid()); got != "" {
			t.Errorf("this process: got %q, want none", got)
		}
	}
	for _, pid := range []int{0, -1, maxPID + 1} {
		if got := l.Client(pid); got != unknownClient {
			t.Errorf("process %d: got %q, want %q", pid, got, unknownClient)
		}
	}
}

func TestContainerOf(t *testing.T) {
	outer, inner := strings.Repeat("0123456789abcdef", 4), strings.Repeat("fedcba9876543210", 4)
	for name, c := range map[string]struct{ text, want string }{
		"none":           {"0::/user.slice/session-1.scope\n", ""},
		"one":            {"0::/system.slice/docker-" + outer + ".scope\n", outer[:shortDigits]},
		"in another":     {"0::/docker/" + outer + "/docker/" + inner + "\n", outer[:shortDigits]},
		"no such":        {"", ""},
		"with cgroup v1": {"4:memory:/docker/" + outer + "\n0::/\n", outer[:shortDigits]},
	} {
		root := t.TempDir()
		if err := os.MkdirAll(filepath.Join(root, "proc/7"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, "proc/7/cgroup"), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := ContainerOf(root, "/", 7); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
