package check

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/test/fixture"
)

// TestTooLate: a CPU limit is named only where there is one, of this process's cgroup or of one above it.
func TestTooLate(t *testing.T) {
	const v2 = "30 25 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
	for name, test := range map[string]struct {
		cgroups   string
		file      string // with text
		text      string
		container bool
		limit     bool
	}{
		"v2, none":              {"0::/a/b\n", "a/b/cpu.max", "max 100000\n", false, false},
		"v2":                    {"0::/a/b\n", "a/b/cpu.max", "50000 100000\n", false, true},
		"v2, above":             {"0::/a/b\n", "a/cpu.max", "50000 100000\n", false, true},
		"v2, of a container":    {"0::/\n", "cpu.max", "50000 100000\n", true, true},
		"v2, of another cgroup": {"0::/a/b\n", "c/cpu.max", "50000 100000\n", true, false},
		"v1, none":              {"3:memory:/x\n1:cpu,cpuacct:/a\n", "cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n", true, false},
		"v1":                    {"3:memory:/x\n1:cpu,cpuacct:/a\n", "cpu,cpuacct/a/cpu.cfs_quota_us", "50000\n", false, true},
		"v1, of a container":    {"1:cpu:/docker/1\n", "cpu/cpu.cfs_quota_us", "50000\n", true, true},
		"no cgroup":             {"", "cpu.max", "50000 100000\n", true, false},
	} {
		root := t.TempDir()
		fixture.Write(t, root, fmt.Sprintf("proc/%d/cgroup", os.Getpid()), []byte(test.cgroups))
		for _, of := range []string{"self", "1"} {
			fixture.Write(t, root, "proc/"+of+"/mountinfo", []byte(v2))
		}
		file := filepath.Join("sys/fs/cgroup", test.file)
		fixture.Write(t, root, file, []byte(test.text))
		if test.container {
			fixture.Write(t, root, ".dockerenv", nil)
		}
		m := &machine{Options: Options{Root: root}, root: root}
		message, fix := m.tooLate(497 * time.Millisecond)
		if got := strings.Contains(message, "CPU limit"); got != test.limit || !strings.Contains(message, "497 ms late") {
			t.Errorf("%s: got %q, want a limit %v", name, message, test.limit)
		}
		if got := strings.HasSuffix(fix, m.path(file)); got != test.limit || fix == "" {
			t.Errorf("%s: got the fix %q, want %s named %v", name, fix, file, test.limit)
		}
	}
}
