package follow

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/stallspan/stallspan/internal/source/cgroup"
)

// OwnCgroup returns the cgroup v2 of this process: its path as in /proc/PID/cgroup, and its folder.
func OwnCgroup() (path, folder string, err error) {
	path, err = cgroup.ScopeOf("", os.Getpid())
	if err != nil {
		return "", "", err
	}
	folder, err = cgroup.Dir("", path)
	return path, folder, err
}

// Cgroup is a cgroup v2 for one program, so that its pressure and CPU time are those of the program alone.
type Cgroup struct {
	Path string   // as in /proc/PID/cgroup
	Dir  *os.File // open, to start a process in it
}

// NewCgroup makes a cgroup below the one of this process. Its name begins with name and is new: in containers every run
// may have the same process id, and an earlier run may have left its cgroup. NewCgroup fails without cgroup v2, and
// where the cgroup is not delegated to this process.
func NewCgroup(name string) (*Cgroup, error) {
	parent, folder, err := OwnCgroup()
	if err != nil {
		return nil, err
	}
	full, err := os.MkdirTemp(folder, name)
	if err != nil {
		return nil, err
	}
	dir, err := os.Open(full)
	if err != nil {
		return nil, errors.Join(err, os.Remove(full))
	}
	g := &Cgroup{Path: path.Join(parent, filepath.Base(full)), Dir: dir}
	if err := g.usable(); err != nil {
		return nil, errors.Join(err, g.Remove(0))
	}
	return g, nil
}

// usable returns why no process can be put there or its pressure cannot be read, or nil.
func (g *Cgroup) usable() error {
	for _, name := range []string{"io.pressure", "cpu.stat"} {
		if _, err := os.ReadFile(filepath.Join(g.Dir.Name(), name)); err != nil {
			return err
		}
	}
	// To move a process, the kernel requires write access to the file of the new cgroup and to that of the one above
	// (cgroup-v2.rst, Delegation Containment).
	for _, folder := range []string{g.Dir.Name(), filepath.Dir(g.Dir.Name())} {
		procs, err := os.OpenFile(filepath.Join(folder, "cgroup.procs"), os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_ = procs.Close()
	}
	return nil
}

// Remove removes the cgroup. It waits up to patience for processes that are exiting. If one stays, the cgroup stays
// until the machine restarts.
func (g *Cgroup) Remove(patience time.Duration) error {
	name := g.Dir.Name()
	_ = g.Dir.Close()
	err := os.Remove(name)
	for end := time.Now().Add(patience); err != nil && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
		err = os.Remove(name)
	}
	return err
}
