package check

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/stallspan/stallspan/internal/source/cgroup"
)

// cpuLimit returns the file with the CPU limit of this process's cgroup or one above it; "" if none has a limit. A
// container without a cgroup namespace sees its own cgroup as the root of the mount.
func (m *machine) cpuLimit() string {
	text, _ := readFile(m.path("proc/" + strconv.Itoa(m.pid()) + "/cgroup"))
	for line := range strings.Lines(text) {
		_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
		controllers, scope, _ := strings.Cut(rest, ":")
		top, file := m.path("sys/fs/cgroup/"+controllers), "cpu.cfs_quota_us" // of cgroup v1
		if controllers == "" {
			var err error
			if top, err = cgroup.Dir(m.Root, "/"); err != nil {
				continue
			}
			file = "cpu.max"
		} else if !slices.Contains(strings.Split(controllers, ","), "cpu") {
			continue
		}
		for scope = filepath.Clean("/" + scope); ; scope = filepath.Dir(scope) {
			path := filepath.Join(top, scope, file)
			quota, _ := readFile(path) // in microseconds for each period; "max" or -1 for no limit
			if limit, _, _ := strings.Cut(strings.TrimSpace(quota), " "); limit != "" && limit != "max" && limit != "-1" {
				return path
			}
			if scope == "/" {
				break
			}
		}
	}
	return ""
}
