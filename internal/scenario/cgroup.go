//go:build linux

package scenario

import (
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/stallspan/stallspan/internal/monitor"
)

// cgroup is a cgroup v2 of its own for one program, as `stallspan run` makes it.
type cgroup struct {
	path string // as in /proc/PID/cgroup
	dir  *os.File
}

func newCgroup() (*cgroup, error) {
	parent, folder, err := monitor.OwnCgroup()
	if err != nil {
		return nil, err
	}
	full, err := os.MkdirTemp(folder, "stallspan-scenario-")
	if err != nil {
		return nil, err
	}
	dir, err := os.Open(full)
	if err != nil {
		_ = os.Remove(full)
		return nil, err
	}
	return &cgroup{path.Join(parent, filepath.Base(full)), dir}, nil
}

// leaving is for how long processes may still be on their way out.
const leaving = 2 * time.Second

func (g *cgroup) remove() error {
	name := g.dir.Name()
	_ = g.dir.Close()
	err := os.Remove(name)
	for end := time.Now().Add(leaving); err != nil && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
		err = os.Remove(name)
	}
	return err
}
