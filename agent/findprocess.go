package agent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"

	"github.com/stallspan/stallspan/internal/identity"
)

const (
	maxCandidates = 8  // of a name that an error lists
	commandWidth  = 60 // columns of a candidate's command
	zombie        = "Z"
)

// process is one that was found by its number or name.
type process struct {
	pid     int
	parent  int
	foreign bool   // of another user, and we are not root
	started uint64 // ticks since the machine's start, so that a later process with its number is another one
	name    string // of its script, or of its program
	program string
	command string // for a list of candidates
}

// findProcess finds a process by its number, or by the name of its program or script. Of processes below each other it
// is the uppermost one.
func findProcess(proc, who string) (process, error) {
	fs, err := procfs.NewFS(proc)
	if err != nil {
		return process{}, fmt.Errorf("processes cannot be listed: %w", err)
	}
	if pid, err := strconv.Atoi(who); err == nil {
		found, ok := readProcess(fs, pid)
		if !ok {
			return process{}, fmt.Errorf("there is no process %d: see ps -e", pid)
		}
		return found, nil
	}
	all, err := fs.AllProcs()
	if err != nil {
		return process{}, fmt.Errorf("processes cannot be listed: %w", err)
	}
	known := make(map[int]process, len(all))
	for _, p := range all {
		if found, ok := readProcess(fs, p.PID); ok {
			known[p.PID] = found
		}
	}
	return choose(known, os.Getpid(), who)
}

// choose returns the process called name, without self and its ancestors: a shell or sudo names it too. Our own come
// before those of other users: runuser, of root, names the program that it started for us.
func choose(known map[int]process, self int, name string) (process, error) {
	var found []process
	ours := ancestors(known, self)
	for pid, p := range known {
		if !ours[pid] && p.called(name) {
			found = append(found, p)
		}
	}
	foreign := func(p process) bool { return p.foreign }
	if own := slices.DeleteFunc(slices.Clone(found), foreign); len(own) > 0 {
		found = own
	}
	found = slices.DeleteFunc(found, func(p process) bool {
		above := ancestors(known, p.parent)
		return slices.ContainsFunc(slices.Clone(found), func(other process) bool { return above[other.pid] })
	})
	switch len(found) {
	case 0:
		return process{}, fmt.Errorf("no process is called %q: give its number, see ps -e", name)
	case 1:
		return found[0], nil
	}
	slices.SortFunc(found, func(a, b process) int { return a.pid - b.pid })
	var lines []string
	for _, p := range found[:min(len(found), maxCandidates)] {
		lines = append(lines, fmt.Sprintf("%d (%s)", p.pid, p.command))
	}
	if more := len(found) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("%d more", more))
	}
	return process{}, usage(errors.New(printable(fmt.Sprintf("%d processes are called %q: give the number of one: %s",
		len(found), name, strings.Join(lines, ", ")))))
}

// ancestors is a process and all above it.
func ancestors(known map[int]process, pid int) map[int]bool {
	above := map[int]bool{}
	for pid > 0 && !above[pid] {
		above[pid] = true
		pid = known[pid].parent
	}
	return above
}

func (p process) called(name string) bool {
	return p.name == name || p.program == name
}

// running reads the state of a process that has not ended.
func running(fs procfs.FS, pid int) (p procfs.Proc, stat procfs.ProcStat, ok bool) {
	p, err := fs.Proc(pid)
	if err != nil {
		return p, stat, false
	}
	stat, err = p.Stat()
	return p, stat, err == nil && stat.State != zombie
}

func readProcess(fs procfs.FS, pid int) (process, bool) {
	p, stat, ok := running(fs, pid)
	if !ok {
		return process{}, false
	}
	found := process{pid: pid, parent: stat.PPID, started: stat.Starttime, name: stat.Comm, program: stat.Comm,
		command: stat.Comm}
	if status, err := p.NewStatus(); err == nil && os.Geteuid() != 0 {
		found.foreign = status.UIDs[0] != uint64(os.Getuid())
	}
	if argv, err := p.CmdLine(); err == nil && len(argv) > 0 { // kernel threads have none
		found.name, found.program = identity.NameOf(argv), filepath.Base(argv[0])
		found.command = strings.TrimRight(fit(strings.Join(argv, " "), commandWidth), " ")
	}
	return found, true
}

// runs reports whether the process still runs.
func (p process) runs(fs procfs.FS) bool {
	_, now, ok := running(fs, p.pid)
	return ok && now.Starttime == p.started
}
