package process

import (
	"slices"
	"time"
)

// A job that begins to read much may begin to load a model. It is read in every round for a second then, also if it is
// read rarely, and who looks at the open files of jobs is woken at once: a small model is read within a second.
const (
	stirBytes = 1 << 20 // by calls and from storage, in a round
	stirFor   = time.Second
	// Of a job that reads much all the time, and loads no model, this is not done again and again. It waits twice as long
	// after each time.
	stirWait    = 2 * time.Second
	maxStirWait = time.Minute
)

// stirring is what is known of this of a job.
type stirring struct {
	until time.Duration // Stamp.Mono up to which it is read in every round
	next  time.Duration // from when on it may stir again
	wait  time.Duration // how long it waited for that
	bytes uint64        // that it had read at its last reading
}

// Stirs makes the source send to wake when a job stirs. The channel needs room for one. Call it before the first
// reading.
func (s *Source) Stirs(wake chan<- struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wake = wake
}

// EachStirred calls mark for the jobs that stirred since the last call.
func (s *Source) EachStirred(mark func(id string)) {
	s.mu.Lock()
	stirred := s.stirred
	s.stirred = nil
	s.mu.Unlock()
	for _, id := range stirred {
		mark(id)
	}
}

// hear learns from the scheduler which jobs read much since the last round.
func (s *Source) hear(now time.Duration) {
	if s.wake == nil || s.idle.activity == nil {
		return
	}
	s.idle.activity.EachMoved(stirBytes, func(id string) {
		for _, j := range s.jobs {
			if j.id == id {
				s.stir(j, now)
			}
		}
	})
}

// compare learns the same of a job that was just read, where the scheduler does not say it.
func (s *Source) compare(j *job, now time.Duration) {
	all := j.total[readBytes] + j.total[readChars]
	before := j.stirring.bytes
	j.stirring.bytes = all
	heard := j.rarely && s.idle.known
	if s.wake != nil && !heard && j.readings > 1 && all >= before+stirBytes {
		s.stir(j, now)
	}
}

func (s *Source) stir(j *job, now time.Duration) {
	st := &j.stirring
	if now < st.next {
		return
	}
	st.wait = min(max(2*st.wait, stirWait), maxStirWait)
	st.until, st.next = now+stirFor, now+stirFor+st.wait
	s.notice(j)
}

// notice wakes who looks at jobs, for one of them.
func (s *Source) notice(j *job) {
	if !slices.Contains(s.stirred, j.id) && len(s.stirred) < MaxJobs {
		s.stirred = append(s.stirred, j.id)
	}
	select {
	case s.wake <- struct{}{}:
	default: // it is known that there is something to see
	}
}
