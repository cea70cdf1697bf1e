package process

import (
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/source/tcp"
)

// Scheduler says what processes did since the last call, among those whose threads it follows. It is implemented by
// bpf.Source.
type Scheduler interface {
	// EachRan calls mark for each process that may have run. forked is whether it began other processes meanwhile: such a
	// process may not be known otherwise, or be 0. It reports whether these are all.
	EachRan(mark func(pid int, forked bool)) (all bool)
	// EachMoved calls mark for each job that has read so many bytes.
	EachMoved(least uint64, mark func(job string))
	// EachConnection calls visit for each connection that was established or closed, in any network namespace. It reports
	// whether these are all.
	EachConnection(visit func(*tcp.Change)) (all bool)
}

const (
	// maxReads is the number of processes of a job above which it is read once a second in any case: a process takes
	// about 3 us.
	maxReads = 384
	// edgeInterval is the minimum between two readings of a job that is read once a second. The ends of windows are later
	// than the last reading by that at most.
	edgeInterval = 500 * time.Millisecond
	// unsureFor is how long all processes are read after events were lost: one may run that seems not to.
	unsureFor = 2 * time.Second
	// youngFor is how long a job is young. Programs load models at their start.
	youngFor = 30 * time.Second
	// lookEvery is the longest time, in scans of a job, until the children of a process are listed that began none by the
	// scheduler's reports.
	lookEvery = 30

	// A job that reads stirBytes in a round, by calls and from storage, may begin to load a model. Of one that reads much
	// all the time, and loads no model, this is not noticed again and again: the pause doubles after each time.
	stirBytes   = 1 << 20
	stirFor     = time.Second
	stirWait    = 2 * time.Second
	maxStirWait = time.Minute
)

// pass is the reading that is under way.
type pass struct {
	round uint64        // its number
	now   time.Duration // Stamp.Mono
	edge  bool          // a window begins or ends
	full  bool          // all is read: once a second
	known bool          // the scheduler said which processes ran

	fullAt   time.Duration // of the last one in which all was read
	unsure   time.Duration // up to which events may be missing
	forkedAt uint64        // number of the last one in which any process may have become the parent of another
}

// reads reports whether a job is read in a round, with those of its processes that are not idle: in each round if an
// open window or a load under way needs it, or it is young, and once a second otherwise.
func (r *pass) reads(j *job) bool {
	needed := !j.rare || r.now < j.stirring.until || r.now-j.begun < youngFor
	return r.full || needed && len(j.members) <= maxReads || r.edge && r.now-j.readAt >= edgeInterval
}

// isIdle reports whether a process need not be read in this round: the scheduler's events show that it did not run, so
// that its counters are the same. There are exceptions, as io_uring may work for it, so that it is read once a second.
// One that has ended runs no more, but leaves its counters to its parent: it is read whenever its parent is, which is
// before it (readWanted).
func (s *Source) isIdle(p *proc) bool {
	if s.full || !s.known || !p.traced || p.ran {
		return false
	}
	parent := s.procs[p.parent]
	return !p.ended || parent != nil && parent.left == s.round
}

// begin begins a reading, with what happened since the last one.
func (s *Source) begin(now time.Duration, edge bool) {
	s.round++
	s.now, s.edge = now, edge
	if s.full = s.fullAt == 0 || now-s.fullAt >= scanInterval; s.full {
		s.fullAt = now
	}
	s.noteMoved()
	s.noteRan()
	s.connections.hear(s.scheduler, s.jobs, now)
}

// Watch makes the source learn from the scheduler which processes ran, which jobs read much, and which connections
// opened and closed between two readings. Call it before the first reading.
func (s *Source) Watch(scheduler Scheduler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scheduler = scheduler
}

// noteRan takes note of the processes that ran since the last round.
func (s *Source) noteRan() {
	if s.scheduler == nil {
		return
	}
	all := s.scheduler.EachRan(func(pid int, forked bool) {
		p := s.procs[pid]
		if p != nil {
			p.traced, p.ran = true, true
		}
		switch {
		case !forked:
		case p == nil || p.gone:
			s.forkedAt = s.round
		default:
			p.forkedAt = s.round
		}
	})
	if !all {
		s.unsure, s.forkedAt = s.now+unsureFor, s.round
	}
	s.known = s.now >= s.unsure
}

// childless reports whether a process began no other one since its children were listed, by the scheduler's reports.
func (s *Source) childless(m *member) bool {
	return s.known && m.traced && m.listedAt > 0 && m.listedAt >= max(m.forkedAt, s.forkedAt)
}

// orphan takes note that a process has ended, or is no longer followed, and that its children may belong to any other
// one: those of all are listed again.
func (s *Source) orphan(m *member) {
	if m.forkedAt > m.listedAt {
		s.forkedAt = s.round + 1
		m.listedAt = m.forkedAt
	}
}

// stirring is what is known of a job that begins to read much.
type stirring struct {
	until time.Duration // Stamp.Mono up to which it is read in every round
	next  time.Duration // from when on it may stir again
	wait  time.Duration // how long it waited for that
	bytes uint64        // that it had read at its last reading
}

// Stirs makes the source send to wake when a job begins to read much. The channel needs room for one. Call it before
// the first reading.
func (s *Source) Stirs(wake chan<- struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake = wake
}

// EachStirred calls mark for the jobs that began to read much since the last call.
func (s *Source) EachStirred(mark func(id string)) {
	s.mu.Lock()
	stirred := s.stirred
	s.stirred = nil
	s.mu.Unlock()
	for _, id := range stirred {
		mark(id)
	}
}

// noteMoved takes note of the jobs that read much since the last round.
func (s *Source) noteMoved() {
	if s.wake == nil || s.scheduler == nil {
		return
	}
	s.scheduler.EachMoved(stirBytes, func(id string) {
		if j := s.jobNamed(id); j != nil {
			s.stir(j)
		}
	})
}

// compare notes the same of a job that was just read, where the scheduler does not say it.
func (s *Source) compare(j *job) {
	all := j.total[readBytes] + j.total[readChars]
	before := j.stirring.bytes
	j.stirring.bytes = all
	heard := s.known && j.rare && s.now >= j.stirring.until
	if s.wake != nil && !heard && j.readings > 1 && all >= before+stirBytes {
		s.stir(j)
	}
}

// stir has a job read in every round for a second, and wakes who looks at the open files of jobs: a small model is read
// within a second.
func (s *Source) stir(j *job) {
	st := &j.stirring
	if s.now < st.next {
		return
	}
	st.wait = min(max(2*st.wait, stirWait), maxStirWait)
	st.until, st.next = s.now+stirFor, s.now+stirFor+st.wait
	if !slices.Contains(s.stirred, j.id) && len(s.stirred) < MaxJobs {
		s.stirred = append(s.stirred, j.id)
	}
	select {
	case s.wake <- struct{}{}:
	default: // it is known that there is something to see
	}
}
