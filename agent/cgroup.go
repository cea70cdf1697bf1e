package agent

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/stallspan/stallspan/internal/monitor"
)

// cgroup is a cgroup v2 made for one run, so that its pressure and CPU time are its own.
type cgroup struct {
	path string // as in /proc/PID/cgroup
	dir  *os.File
}

// newCgroup makes a cgroup below our own. Where that is not permitted (no cgroup v2, or one that was not delegated to
// us) it gives nil: the run then shares the pressure of the cgroup it is in.
func newCgroup() *cgroup {
	parent, folder, err := monitor.OwnCgroup()
	if err != nil {
		return nil
	}
	// The name is new: in containers every run may have the same process id, and an earlier one may have left its own.
	full, err := os.MkdirTemp(folder, fmt.Sprintf("stallspan-run-%d-", os.Getpid()))
	if err != nil {
		return nil
	}
	dir, err := os.Open(full)
	if err != nil {
		_ = os.Remove(full)
		return nil
	}
	g := &cgroup{path: path.Join(parent, filepath.Base(full)), dir: dir}
	if !g.usable() {
		g.remove()
		return nil
	}
	return g
}

// usable says whether a process can be put there and its pressure read.
func (g *cgroup) usable() bool {
	for _, name := range []string{"io.pressure", "cpu.stat"} {
		if _, err := os.ReadFile(filepath.Join(g.dir.Name(), name)); err != nil {
			return false
		}
	}
	// To move a process the kernel wants both, that of the new cgroup and that of the one above (cgroup-v2.rst, Delegation
	// Containment).
	for _, folder := range []string{g.dir.Name(), filepath.Dir(g.dir.Name())} {
		procs, err := os.OpenFile(filepath.Join(folder, "cgroup.procs"), os.O_WRONLY, 0)
		if err != nil {
			return false
		}
		_ = procs.Close()
	}
	return true
}

// leaving is for how long processes that the program has started may still be on their way out.
const leaving = 500 * time.Millisecond

// remove takes the cgroup away. A process that was left running in it keeps it: it goes with the machine's next start.
func (g *cgroup) remove() {
	if g == nil {
		return
	}
	name := g.dir.Name()
	_ = g.dir.Close()
	for end := time.Now().Add(leaving); os.Remove(name) != nil && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
}
