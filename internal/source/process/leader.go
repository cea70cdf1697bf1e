package process

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	maxLeaders  = 64 // of a job
	maxWrappers = 8  // nested
	// Ticks of CPU time between two scans: a launcher uses at most launcherTicks, and its child at least launchedTicks.
	launcherTicks = 1
	launchedTicks = 10
)

// Lead sets which processes of a job drive a GPU: those that hold memory of one, where that is known. It uses at most
// 64. It does not wait for a reading.
func (s *Source) Lead(id string, pids []int) {
	s.holding.Lock()
	defer s.holding.Unlock()
	if s.holders == nil {
		s.holders = map[string][]int{}
	}
	if len(s.holders) < MaxJobs || s.holders[id] != nil {
		s.holders[id] = slices.Clone(pids[:min(len(pids), maxLeaders)])
	}
}

func (s *Source) holdersOf(id string) []int {
	s.holding.Lock()
	defer s.holding.Unlock()
	return s.holders[id]
}

func (s *Source) release(id string) {
	s.holding.Lock()
	defer s.holding.Unlock()
	delete(s.holders, id)
}

// minFindInterval is the minimum time between two searches for leaders, with any number of readings for edges.
const minFindInterval = 80 * time.Millisecond

// findLeaders finds the processes that lead.
func (j *job) findLeaders(s *Source, now time.Duration) {
	if j.ledAt != 0 && now-j.ledAt < minFindInterval {
		return
	}
	j.ledAt = now
	members := j.leading(s, s.holdersOf(j.id))
	leads := func(pid int) bool {
		return slices.ContainsFunc(members, func(m *member) bool { return m.pid == pid })
	}
	found := slices.DeleteFunc(slices.Clone(j.leaders), func(pid int) bool { return !leads(pid) })
	for _, m := range members {
		if !slices.Contains(found, m.pid) {
			found = append(found, m.pid)
		}
	}
	if len(found) > 0 && !slices.Equal(found, j.leaders) {
		j.leaders = found
	}
}

// leading returns the processes with the leader threads: the holders, if any is alive, or else the oldest process
// inside its wrappers, as in most training programs. A wrapper has one child, which runs another program, or the same
// program with other arguments while the wrapper is idle, as Python's launchers do. Workers of Python's multiprocessing
// are not programs of their own: forked workers have the arguments of their parent.
func (j *job) leading(s *Source, holders []int) (members []*member) {
	for _, pid := range holders {
		if m := j.byPID[pid]; m != nil && m.present() {
			members = append(members, m)
		}
	}
	if len(members) > 0 {
		return members
	}
	m := j.oldest()
	for range maxWrappers {
		if m == nil {
			return nil
		}
		child, count := j.childOf(m)
		if count != 1 || !s.wraps(m, child) {
			break
		}
		m = child
	}
	for _, other := range j.members {
		other.worked = other.own
	}
	return append(members, m)
}

func (s *Source) wraps(m, child *member) bool {
	switch {
	case m.own-m.worked > launcherTicks:
		m.launcher = false
	case child.own-child.worked >= launchedTicks:
		m.launcher = true
	}
	return !s.sameProgram(m, child) || m.launcher && m.launched(child)
}

// sameProgram compares the executables of two processes, or without permission their names.
func (s *Source) sameProgram(m, child *member) bool {
	if s.reader == nil {
		return m.program() == child.program()
	}
	same, err := s.reader.SameProgram(m.key(), child.key())
	if err != nil {
		return m.name() == child.name()
	}
	return same
}

// launched reports whether a child of the same program has other arguments.
func (m *member) launched(child *member) bool {
	own, other := m.arguments(), child.arguments()
	return own != other && !strings.Contains(other, "multiprocessing")
}

// arguments returns the command line of a process.
func (m *member) arguments() string {
	text, _ := readAll(filepath.Join(m.dir, "cmdline"), 4096)
	return string(text)
}

func (j *job) oldest() *member {
	for _, m := range j.members {
		if m.present() && !m.feeds {
			return m
		}
	}
	return nil
}

// childOf returns the oldest living child of a member, and the number of children.
func (j *job) childOf(m *member) (child *member, count int) {
	for _, other := range j.members {
		if other.parent == m.pid && other != m && other.present() {
			if count++; count == 1 {
				child = other
			}
		}
	}
	return child, count
}

// program returns the executable of a process, or without permission its name.
func (m *member) program() string {
	if exe, err := os.Readlink(filepath.Join(m.dir, "exe")); err == nil {
		return exe
	}
	return m.name()
}

func (m *member) name() string {
	name, _ := readSmall(filepath.Join(m.dir, "comm"))
	return strings.TrimSpace(string(name))
}
