// Package procs finds the process that a user names.
package procs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/identity"
	"github.com/stallspan/stallspan/internal/source/procfile"
)

const (
	maxCandidates = 8  // of a name that an error lists
	commandWidth  = 60 // columns of a candidate's command
	zombie        = "Z"
)

// Process is one that was found by its number or name.
type Process struct {
	PID     int
	Parent  int
	Foreign bool   // of another user, and we are not root
	started uint64 // ticks since the machine's start, so that a later process with its number is another one
	Name    string // of its script, or of its program
	Program string
	command string // for a list of candidates
}

// Find finds a process by its number, or by the name of its program or script. Of processes below each other it
// is the uppermost one.
func Find(proc, who string) (Process, error) {
	fs, err := procfs.NewFS(proc)
	if err != nil {
		return Process{}, fmt.Errorf("processes cannot be listed: %w", err)
	}
	if pid, err := strconv.Atoi(who); err == nil {
		found, ok := Read(fs, pid)
		if !ok {
			return Process{}, fmt.Errorf("there is no process %d: see ps -e", pid)
		}
		return found, nil
	}
	all, err := fs.AllProcs()
	if err != nil {
		return Process{}, fmt.Errorf("processes cannot be listed: %w", err)
	}
	known := make(map[int]Process, len(all))
	for _, p := range all {
		if found, ok := Read(fs, p.PID); ok {
			known[p.PID] = found
		}
	}
	return choose(known, os.Getpid(), who)
}

// choose returns the process called name, without self and its ancestors: a shell or sudo names it too. Our own come
// before those of other users: runuser, of root, names the program that it started for us.
func choose(known map[int]Process, self int, name string) (Process, error) {
	var found []Process
	ours := ancestors(known, self)
	for pid, p := range known {
		if !ours[pid] && p.called(name) {
			found = append(found, p)
		}
	}
	foreign := func(p Process) bool { return p.Foreign }
	if own := slices.DeleteFunc(slices.Clone(found), foreign); len(own) > 0 {
		found = own
	}
	found = slices.DeleteFunc(found, func(p Process) bool {
		above := ancestors(known, p.Parent)
		return slices.ContainsFunc(slices.Clone(found), func(other Process) bool { return above[other.PID] })
	})
	switch len(found) {
	case 0:
		return Process{}, fmt.Errorf("no process is called %q: give its number, see ps -e", name)
	case 1:
		return found[0], nil
	}
	slices.SortFunc(found, func(a, b Process) int { return a.PID - b.PID })
	var lines []string
	for _, p := range found[:min(len(found), maxCandidates)] {
		lines = append(lines, fmt.Sprintf("%d (%s)", p.PID, p.command))
	}
	if more := len(found) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("%d more", more))
	}
	return Process{},
		cli.Usage(errors.New(output.Printable(fmt.Sprintf("%d processes are called %q: give the number of one: %s",
			len(found), name, strings.Join(lines, ", ")))))
}

// ancestors is a process and all above it.
func ancestors(known map[int]Process, pid int) map[int]bool {
	above := map[int]bool{}
	for pid > 0 && !above[pid] {
		above[pid] = true
		pid = known[pid].Parent
	}
	return above
}

func (p Process) called(name string) bool {
	return p.Name == name || p.Program == name
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

// Read reads a process that has not ended.
func Read(fs procfs.FS, pid int) (Process, bool) {
	p, stat, ok := running(fs, pid)
	if !ok {
		return Process{}, false
	}
	found := Process{PID: pid, Parent: stat.PPID, started: stat.Starttime, Name: stat.Comm, Program: stat.Comm,
		command: stat.Comm}
	if status, err := p.NewStatus(); err == nil && os.Geteuid() != 0 {
		found.Foreign = status.UIDs[0] != uint64(os.Getuid())
	}
	argv, _ := procfile.Do(procfs.DefaultMountPoint, pid, func() []string {
		argv, _ := p.CmdLine()
		return argv
	})
	if len(argv) > 0 { // kernel threads have none, and nor has one for which the kernel does not answer
		found.Name, found.Program = identity.NameOf(argv), filepath.Base(argv[0])
		found.command = strings.TrimRight(output.Fit(strings.Join(argv, " "), commandWidth), " ")
	}
	return found, true
}

// attachLook is how often a wait looks whether the process is still there.
const attachLook = 100 * time.Millisecond

// Wait returns when the time is over, ctx ends, or the process has gone.
func (p Process) Wait(ctx context.Context, length time.Duration) (gone bool) {
	fs, err := procfs.NewFS(procfs.DefaultMountPoint)
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	look := time.NewTicker(attachLook)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-look.C:
			if _, now, ok := running(fs, p.PID); !ok || now.Starttime != p.started {
				return true
			}
		}
	}
}
