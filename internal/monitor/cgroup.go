package monitor

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/stallspan/stallspan/internal/source/cgroup"
)

// OwnCgroup is this process's cgroup v2: its path as in /proc/PID/cgroup, and its folder.
func OwnCgroup() (path, folder string, err error) {
	path, err = cgroup.ScopeOf("", os.Getpid())
	if err != nil {
		return "", "", err
	}
	folder, err = cgroup.Dir("", path)
	return path, folder, err
}

// Cgroup is a cgroup v2 made for one program, so that its pressure and CPU time are its own.
type Cgroup struct {
	Path string   // as in /proc/PID/cgroup
	Dir  *os.File // open, to start a process in it
}

// NewCgroup makes a cgroup below our own, with a new name that begins so: in containers every run may have the same process
// id, and an earlier one may have left its own. It fails where that is not permitted: no cgroup v2, or one that was not
// delegated to us.
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

// usable says why no process can be put there or its pressure cannot be read, or nil.
func (g *Cgroup) usable() error {
	for _, name := range []string{"io.pressure", "cpu.stat"} {
		if _, err := os.ReadFile(filepath.Join(g.Dir.Name(), name)); err != nil {
			return err
		}
	}
	// To move a process the kernel wants both, that of the new cgroup and that of the one above (cgroup-v2.rst, Delegation
	// Containment).
	for _, folder := range []string{g.Dir.Name(), filepath.Dir(g.Dir.Name())} {
		procs, err := os.OpenFile(filepath.Join(folder, "cgroup.procs"), os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_ = procs.Close()
	}
	return nil
}

// Remove takes the cgroup away. Processes that are on their way out are waited for, for so long. One that stays keeps it:
// it goes with the machine's next start.
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
