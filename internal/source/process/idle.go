package process

import "time"

// Activity says which processes ran. It is implemented by schedule.Source.
type Activity interface {
	// EachRan calls mark for each process that may have run since the last call, among those whose threads are followed.
	// forked is whether it began other processes meanwhile: such a process may not be known otherwise, or be 0. It reports
	// whether these are all.
	EachRan(mark func(pid int, forked bool)) (all bool)
	// EachMoved calls mark for each job that has read so many bytes since the last call.
	EachMoved(least uint64, mark func(job string))
}

// The counters of a process change only while one of its threads runs, with exceptions: io_uring may work for it, a
// hypervisor may hide a switch. So one that did not run is read once a second.

// unsureFor is how long all processes are read after events were lost: one may run that seems not to.
const unsureFor = 2 * time.Second

// idleness is what is known of processes that do not run. The zero value knows nothing.
type idleness struct {
	activity Activity
	unsure   time.Duration // Stamp.Mono until which all are read
	known    bool          // in this round
	forks    uint64        // by processes that are not followed here: their children may belong to any job
}

// Watch makes the source leave out processes that did not run. Call it before the first reading.
func (s *Source) Watch(a Activity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idle.activity = a
}

// noteRan takes note of the processes that ran since the last round.
func (s *Source) noteRan(now time.Duration) {
	if s.idle.activity == nil {
		return
	}
	all := s.idle.activity.EachRan(func(pid int, forked bool) {
		p := s.procs[pid]
		if p != nil {
			p.traced, p.ran = true, true
		}
		switch {
		case !forked:
		case p == nil || p.gone:
			s.idle.forks++
		default:
			p.forks++
		}
	})
	if !all {
		s.idle.unsure = now + unsureFor
		s.idle.forks++
	}
	s.idle.known = now >= s.idle.unsure
}

// isIdle reports whether a process need not be read in this round. One that has ended runs no more, but leaves its
// counters to its parent: it is read whenever its parent is, which is before it (readWanted).
func (s *Source) isIdle(p *proc) bool {
	return s.idle.known && p.traced && !p.ran && !s.fullRound && (!p.ended || s.leftOut(p.parent))
}

// lookEvery is the longest time, in scans of a job, until the children of a process are listed that began none by the
// scheduler's reports.
const lookEvery = 30

// childless reports whether a process began no other one since its children were listed, by the scheduler's reports.
func (s *Source) childless(m *member) bool {
	return s.idle.known && m.traced && m.listed.traced && m.listed.forks == m.forks && m.listed.others == s.idle.forks
}

// listing is what was known of a process when its children were listed.
type listing struct {
	traced        bool
	forks, others uint64 // its own, and idleness.forks
}

// leftOut reports whether the process of that number did not run, and was not read in this round.
func (s *Source) leftOut(pid int) bool {
	p := s.procs[pid]
	return p != nil && p.left == s.round
}
