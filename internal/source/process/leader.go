package process

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	mostLeaders  = 64 // of a job
	mostWrappers = 8  // one around another
	// Between two looks a launcher of the same program takes at most so many ticks of CPU time, and what it has launched at
	// least so many. One that takes more is none.
	launcherTicks = 1
	launchedTicks = 10
)

// Lead says which processes of a job drive an accelerator, where that is known: those that hold memory of one. At most 64
// are taken. It waits for no reading.
func (s *Source) Lead(id string, pids []int) {
	s.holding.Lock()
	defer s.holding.Unlock()
	if s.holders == nil {
		s.holders = map[string][]int{}
	}
	if len(s.holders) < mostJobs || s.holders[id] != nil {
		s.holders[id] = slices.Clone(pids[:min(len(pids), mostLeaders)])
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

func (t *threads) leads(id int) bool {
	return slices.ContainsFunc(t.leaders, func(l *thread) bool { return l.id == id })
}

// lead makes the first threads of these processes the leading ones.
func (t *threads) lead(s *Source, members []*member) {
	if len(members) == 0 {
		return
	}
	t.leaders = slices.DeleteFunc(t.leaders, func(l *thread) bool {
		if slices.ContainsFunc(members, func(m *member) bool { return m.pid == l.id }) {
			return false
		}
		l.close(s)
		return true
	})
	for _, m := range members {
		if !t.leads(m.pid) {
			t.leaders = append(t.leaders, s.follow(m.pid, t.at))
		}
	}
}

// leading is the processes whose first threads drive the accelerators: the holders, where those are known and there. Else it
// is the oldest one, as training programs have it, but for wrappers around it. A wrapper has one child, which runs another
// program; or the same one with other arguments, as Python's launchers do, while the wrapper does next to nothing. The
// workers of Python's multiprocessing are no programs of their own: forked ones keep their parent's arguments.
func (j *job) leading(holders []int) (members []*member) {
	for _, pid := range holders {
		if m := j.byPID[pid]; m != nil && m.present() {
			members = append(members, m)
		}
	}
	if len(members) > 0 {
		return members
	}
	m := j.oldest()
	for range mostWrappers {
		if m == nil {
			return nil
		}
		child, count := j.childOf(m)
		if count != 1 || !wraps(m, child) {
			break
		}
		m = child
	}
	for _, other := range j.members {
		other.worked = other.own
	}
	return append(members, m)
}

func wraps(m, child *member) bool {
	switch {
	case m.own-m.worked > launcherTicks:
		m.launcher = false
	case child.own-child.worked >= launchedTicks:
		m.launcher = true
	}
	return m.program() != child.program() || m.launcher && m.launched(child)
}

// launched says that a child of the same program was given arguments of its own.
func (m *member) launched(child *member) bool {
	own, given := m.arguments(), child.arguments()
	return own != given && !strings.Contains(given, "multiprocessing")
}

// arguments is what a process was started with.
func (m *member) arguments() string {
	text, _ := readAll(filepath.Join(m.dir, "cmdline"), 4096)
	return string(text)
}

func (j *job) oldest() *member {
	for _, m := range j.members {
		if m.present() {
			return m
		}
	}
	return nil
}

// childOf is the oldest living child of a member, and how many there are.
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

// program is what a process runs: its executable, or, where we may not know that, its name.
func (m *member) program() string {
	if exe, err := os.Readlink(filepath.Join(m.dir, "exe")); err == nil {
		return exe
	}
	name, _ := readAll(filepath.Join(m.dir, "comm"), 64)
	return strings.TrimSpace(string(name))
}
