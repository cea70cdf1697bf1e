package locate

import (
	"cmp"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/source/process"
)

// inContainer finds a process by its number in a container; for pid 0 it finds the container. now is the time of the
// query.
func (l *Locator) inContainer(id string, pid int, now time.Duration) answer {
	before := l.seen.Load()
	if before != nil {
		if a := l.lookUp(before, id, pid); a.full {
			return a
		}
	}
	t := l.fresh()
	if t != before {
		if a := l.lookUp(t, id, pid); a.full {
			return a
		}
	}
	var a answer
	if pid != 0 {
		a = l.query(key{container: id})
	}
	a.full, a.until = false, now+missFor
	if t.at < now { // the container may be younger than the scan
		a.until = min(a.until, time.Duration(l.scanFrom.Load()))
	}
	return a
}

// lookUp reads the processes that a scan found in the container. They may have ended, or be other processes by now.
func (l *Locator) lookUp(t *table, id string, pid int) answer {
	whole, pids := t.members(id)
	if len(pids) == 0 {
		return answer{}
	}
	buf := l.buffer()
	defer l.buffers.Put(buf)
	if pid == 0 {
		return l.first(whole, pids, buf[:])
	}
	found := among(pids, l.numbered(t, pid))
	if found == 0 {
		return answer{}
	}
	if s, ok := parseStatus(read(l.proc, found, "status", buf[:])); !ok || !s.memory || s.inner != pid {
		return answer{}
	}
	return l.member(whole, found, buf[:])
}

// first returns the place of the oldest of these processes that is in the container.
func (l *Locator) first(id string, pids []int, buf []byte) answer {
	type member struct {
		pid   int
		start uint64
	}
	alive := make([]member, 0, len(pids))
	for _, pid := range pids {
		if of, ok := process.ParseStat(read(l.proc, pid, "stat", buf)); ok && !of.Ended {
			alive = append(alive, member{pid, of.Start})
		}
	}
	slices.SortFunc(alive, func(a, b member) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.pid, b.pid))
	})
	for _, p := range alive {
		if a := l.member(id, p.pid, buf); a.full {
			return a
		}
	}
	return answer{}
}

// member returns the place of a process, if it is in the container.
func (l *Locator) member(id string, pid int, buf []byte) answer {
	group, ok := within(read(l.proc, pid, "cgroup", buf), l.groups.Own(), id)
	if !ok {
		return answer{}
	}
	return answer{place: Place{PID: pid, Cgroup: group, Own: group != ""}, here: true, full: true}
}

// byNumber finds a process by its number alone. outside means that it runs outside of any container.
func (l *Locator) byNumber(pid int, outside bool) answer {
	buf := l.buffer()
	s, ok := parseStatus(read(l.proc, pid, "status", buf[:]))
	l.buffers.Put(buf)
	here := ok && s.memory && s.group == pid && s.inner == pid && s.depth == 0
	switch {
	case !here && !l.self.nested:
		return answer{}
	case here && outside:
		return answer{place: Place{PID: pid}, full: true}
	}
	other, taken := nested(l.numbered(l.fresh(), pid))
	switch {
	case here && !taken:
		return answer{place: Place{PID: pid}, full: true}
	case !here && other != 0 && l.ourNamespace(other):
		return answer{place: Place{PID: other}, full: true}
	}
	return answer{}
}
