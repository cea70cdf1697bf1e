package process

import (
	"bytes"
	"cmp"
	"errors"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/kernfile"
	"github.com/stallspan/stallspan/internal/source/procfile"
)

const (
	maxLeaders  = 64 // of a job
	maxWrappers = 8  // nested

	// judgeInterval is the least time between two judgements of what processes do. One that works uses a tenth of a core
	// meanwhile, or reads workBytes, from storage or by calls. One that launches others, or polls, uses a fiftieth or a
	// Tick at most, and reads less. Chosen: Python's polling loops use less, and a reader of a slow disk reads more.
	judgeInterval   = 200 * time.Millisecond
	worksOf, idleOf = 10, 50
	workBytes       = 64 << 10
	// A program that has used so much since it started is no shim that starts another one. Chosen: above what shells and
	// their startup files take, below what Python takes to import a library.
	shimTicks = 10
	shimBytes = 512 << 10
	// takeBack is for how many judgements in a row a process works until it leads again in place of one that it launched,
	// and that works, too. Chosen: a shell works while it starts a program.
	takeBack = 5
)

// Lead sets which processes of a job drive a GPU: those that hold memory of one, where that is known. It uses at most
// 64. It does not wait for a reading.
func (s *Source) Lead(id string, pids []int) {
	s.holding.Lock()
	defer s.holding.Unlock()
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
	j.judge(now)
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

// leading returns the processes with the leader threads: the holders, if any is alive, or else one process. That is the
// oldest one, or one that it launched and waits for: see heir.
func (j *job) leading(s *Source, holders []int) (members []*member) {
	for _, pid := range holders {
		if m := j.byPID[pid]; m != nil && m.present() {
			members = append(members, m)
		}
	}
	if len(members) > 0 {
		return members
	}
	m := j.root()
	for range maxWrappers {
		next := s.heir(j, m)
		if next == nil {
			break
		}
		m = next
	}
	if m == nil {
		return nil
	}
	return append(members, m)
}

// judgement is what a process was found to do in the last interval.
type judgement struct {
	ticks, bytes uint64 // own CPU time, and what it read, at its end
	works, idle  bool
	below        bool // it or one below it works
	row          int  // judgements in a row at which it worked
	heir         int  // process that it launched, and that leads in its place; 0 for none
}

// judge finds out which processes work. Members are in the order of their age.
func (j *job) judge(now time.Duration) {
	if j.judgedAt != 0 && now-j.judgedAt < judgeInterval {
		return
	}
	first, passed := j.judgedAt == 0, uint64((now-j.judgedAt)/Tick)
	j.judgedAt = now
	for _, m := range j.members {
		d, read := &m.did, m.bytes()
		ticks, bytes := m.own-min(m.own, d.ticks), read-min(read, d.bytes)
		d.ticks, d.bytes = m.own, read
		d.works = !first && m.present() && (ticks >= max(2, passed/worksOf) || bytes >= workBytes)
		d.idle = !first && ticks <= max(1, passed/idleOf) && bytes < workBytes
		d.below = d.works
		if d.row++; !d.works {
			d.row = 0
		}
	}
	for _, m := range slices.Backward(j.members) {
		if parent := j.byPID[m.parent]; m.did.below && !m.feeds && parent != nil && parent != m {
			parent.did.below = true
		}
	}
}

// root returns the oldest process of the job that none of its others began. Of several, as in a container, it is the
// first that works, or that has one below it that does.
func (j *job) root() (found *member) {
	for _, m := range j.members {
		if !m.present() || m.feeds {
			continue
		}
		if parent := j.byPID[m.parent]; parent != nil && parent != m && parent.present() {
			continue
		}
		if m.did.below {
			return m
		}
		if found == nil {
			found = m
		}
	}
	return cmp.Or(found, j.oldest())
}

// heir returns the process that leads in place of one that launched it; nil if m leads itself: it works, or it only
// waits for its own workers. Once one leads, it does until it waits while another one works.
func (s *Source) heir(j *job, m *member) *member {
	if m == nil {
		return nil
	}
	var now, only *member
	count := 0
	for _, child := range j.members {
		if !child.isChildOf(m) {
			continue
		}
		count++
		only = child
		if child.pid == m.did.heir {
			now = child
		}
	}
	switch {
	case now != nil && (m.did.row >= takeBack || m.did.works && !now.did.below):
		now = nil
	case now != nil && !now.did.below, now == nil && m.did.idle && m.did.below && !m.waitsForChild():
		now = cmp.Or(s.workingChild(j, m), now)
	}
	if now == nil && count == 1 && m.did.row == 0 && m.isShim() && !s.sameProgram(m, only) {
		now = only
	}
	m.did.heir = 0
	if now != nil {
		m.did.heir = now.pid
	}
	return now
}

// isChildOf reports whether a process is a living child of another one, and none that feeds the job.
func (m *member) isChildOf(parent *member) bool {
	return m.parent == parent.pid && m != parent && m.present() && !m.feeds
}

// workingChild returns the oldest program that a process launched and that works, or has one below it that does.
func (s *Source) workingChild(j *job, m *member) *member {
	for _, child := range j.members {
		if child.isChildOf(m) && child.did.below && s.launched(m, child) {
			return child
		}
	}
	return nil
}

// bytes is what the process and the children that it has waited for have read, from storage and by calls.
func (m *member) bytes() uint64 { return m.now[readBytes] + m.now[readChars] }

// isShim reports whether a process may be one that only starts another program.
func (m *member) isShim() bool { return m.own < shimTicks && m.bytes() < shimBytes }

// waitsForChild reports whether a process sleeps until one of its children ends. Then its own time shows what it waits
// for, whichever of them that is. It is false where that may not be read.
func (m *member) waitsForChild() bool {
	text, err := procfile.Text(filepath.Dir(m.dir), m.pid, "syscall", maxSmall)
	if err != nil {
		return false
	}
	number, _, _ := bytes.Cut(text, []byte{' '})
	call, ok := kernfile.ParseUint(number)
	return ok && sample.CallOf(runtime.GOARCH, int(call)) == sample.ChildCall
}

// launched reports whether a child is a program of its own: another one, or the same with other arguments, as of
// Python's launchers. A worker of Python's multiprocessing is not: a forked one has the arguments of its parent. It is
// false while the kernel does not answer for one of them.
func (s *Source) launched(m, child *member) bool {
	if !s.sameProgram(m, child) {
		return true
	}
	own, err := m.arguments()
	other, failed := child.arguments()
	if errors.Is(errors.Join(err, failed), syscall.ETIMEDOUT) {
		return false
	}
	return own != other && !strings.Contains(other, "multiprocessing")
}

// sameProgram compares the executables of two processes, or without permission their names.
func (s *Source) sameProgram(m, child *member) bool {
	same, err := s.reader.SameProgram(m.key(), child.key())
	if err != nil {
		return Name(s.root, m.pid) == Name(s.root, child.pid)
	}
	return same
}

// arguments returns the beginning of the command line of a process.
func (m *member) arguments() (string, error) {
	text, err := procfile.Text(filepath.Dir(m.dir), m.pid, "cmdline", maxSmall)
	return string(text), err
}

func (j *job) oldest() *member {
	for _, m := range j.members {
		if m.present() && !m.feeds {
			return m
		}
	}
	return nil
}
