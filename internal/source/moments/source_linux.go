package moments

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/procfile"
)

// Source looks at the threads of jobs. Its methods may be called at the same time.
type Source struct {
	mu     sync.Mutex
	jobs   map[string]*job
	idle   map[string]bool // jobs without an open window
	held   int             // moments since the newest reading
	failed error
	closed bool
	stop   context.CancelFunc // of the goroutine that looks; nil before the first job
	done   sync.WaitGroup
	stuck  map[int]func() // by number of a goroutine whose look did not end: what to call when it does
	turn   int            // number of the goroutine that looks
	at     int            // thread that it looks at; 0 for none
	since  time.Duration  // Stamp.Mono, since when

	counters looker // of Read
	moments  sample.Moments
}

// job is what is known of a job. The goroutine that looks owns others.
type job struct {
	name    string
	pids    []int
	leaders map[int]*leader
	since   time.Duration // when a window was opened, after none was

	others others
}

// leader is a leading thread since the newest reading.
type leader struct {
	tid     int
	drives  bool
	from    time.Duration // Stamp.Mono of known
	known   counters
	counted bool
	gone    bool // it has ended
	moments []sample.Moment
}

var errClosed = errors.New("the source of moments is closed")

// New returns a Source without jobs.
func New() *Source {
	return &Source{jobs: map[string]*job{}, idle: map[string]bool{}, stuck: map[int]func(){}}
}

// Close ends everything. A closed source reads nothing.
func (s *Source) Close() error {
	s.mu.Lock()
	s.closed = true
	stop, stuck := s.stop, len(s.stuck) > 0
	s.counters.close()
	s.mu.Unlock()
	if stop != nil {
		stop()
		if !stuck { // a look that does not end is left to the kernel
			s.done.Wait()
		}
	}
	return nil
}

// Follow looks at the threads of the processes pids.
func (s *Source) Follow(name string, pids []int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if s.jobs[name] == nil {
		if len(s.jobs) >= maxJobs {
			return fmt.Errorf("the threads of job %s are not looked at: those of %d jobs are already", name, maxJobs)
		}
		s.jobs[name] = &job{
			name: name, since: sample.Now().Mono, leaders: map[int]*leader{},
			others: others{known: map[int]*other{}, read: map[int]time.Duration{}},
		}
	}
	s.jobs[name].pids = slices.Clone(pids)
	if s.stop == nil {
		s.start()
	}
	return nil
}

// Sync replaces the processes of a job.
func (s *Source) Sync(name string, pids []int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.jobs[name]; j != nil {
		j.pids = slices.Clone(pids)
	}
	return nil
}

// Unfollow looks at the threads of a job no longer.
func (s *Source) Unfollow(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.jobs[name]; j != nil {
		for _, l := range j.leaders {
			s.held -= len(l.moments)
		}
		delete(s.jobs, name)
	}
	delete(s.idle, name)
}

// Leader is a thread that leads a job: one whose time is divided.
type Leader struct {
	TID    int
	Drives bool // a GPU
}

// Lead sets the threads that lead a job. Those that led it before are looked at until they end: one that started
// another program leads again after that.
func (s *Source) Lead(name string, leaders []Leader) {
	s.mu.Lock()
	defer s.mu.Unlock()
	j := s.jobs[name]
	if j == nil {
		return
	}
	for _, one := range leaders {
		if one.TID == 0 || j.leaders[one.TID] == nil && len(j.leaders) >= maxLeaders {
			continue
		}
		if j.leaders[one.TID] == nil {
			c, err := s.counters.counters(one.TID, true)
			j.leaders[one.TID] = &leader{tid: one.TID, from: sample.Now().Mono, known: c, counted: err == nil}
		}
		l := j.leaders[one.TID]
		l.drives = l.drives || one.Drives
	}
}

// Watch sets whether a window of a job is open, also of one that is not followed yet. Without a call it is. Moments are
// more frequent then.
func (s *Source) Watch(name string, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle[name] = !open; open {
		delete(s.idle, name)
	}
}

// Begin notes that a window of a job begins.
func (s *Source) Begin(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.jobs[name]; j != nil {
		j.since = sample.Now().Mono
	}
}

// start runs a goroutine that looks. The lock is held.
func (s *Source) start() {
	var ctx context.Context
	if s.stop != nil {
		s.stop()
	}
	ctx, s.stop = context.WithCancel(context.Background())
	s.turn++
	turn := s.turn
	s.done.Add(1)
	go func() {
		defer s.done.Done()
		sample.Restart(ctx, func(err error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.failed = err
		}, func() { s.run(ctx, turn) })
		s.mu.Lock()
		defer s.mu.Unlock()
		if end := s.stuck[turn]; end != nil {
			end()
			delete(s.stuck, turn)
		}
	}()
}

// run looks until ctx ends.
func (s *Source) run(ctx context.Context, turn int) {
	r := &round{source: s, turn: turn, random: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))}
	defer r.looker.close()
	timer := time.NewTimer(0)
	defer timer.Stop()
	var c cells
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		gap, now := r.takeAll(), sample.Now().Mono
		timer.Reset(c.next(now, gap, r.random) - now)
	}
}

// cells divides time, so that each cell has one moment. Moments that are independent of each other would be less even,
// and twice as far off.
type cells struct{ end time.Duration }

// next returns a moment in the next cell, which lasts for gap. A cell that is past is left out.
func (c *cells) next(now, gap time.Duration, random *rand.Rand) time.Duration {
	begin := max(c.end, now-gap)
	c.end = begin + gap
	return max(now, begin+time.Duration(random.Float64()*float64(gap)))
}

// gap is the mean time between two moments of a job.
func (s *Source) gap(j *job, now time.Duration) time.Duration {
	if s.idle[j.name] {
		return idleGap * time.Duration(max(1, len(s.jobs)/fewJobs))
	}
	return min(max((now-j.since)/perAge, firstGap), lastGap)
}

// Read sets Moments and At. The next Read reuses their memory: copy what you keep.
func (s *Source) Read(into *sample.Sample) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := sample.Now()
	into.At = now
	if s.closed {
		return errClosed
	}
	s.unstick(now.Mono)
	s.moments = sample.Moments{Until: now.Mono, Threads: s.moments.Threads[:0]}
	for _, j := range s.jobs {
		for tid, l := range j.leaders {
			if l.gone {
				delete(j.leaders, tid)
				continue
			}
			if w, ok := s.watched(l, now.Mono, !s.idle[j.name]); ok {
				w.Job = j.name
				s.moments.Threads = append(s.moments.Threads, w)
			}
		}
	}
	s.counters.sweep(now.Mono - openFor)
	slices.SortFunc(s.moments.Threads, func(a, b sample.Watched) int { return a.TID - b.TID })
	s.held = 0
	if len(s.jobs) > 0 {
		into.Moments = &s.moments
	}
	failed := s.failed
	s.failed = nil
	return failed
}

// watched ends a leading thread's time since the newest reading. all is whether its work to fetch data matters.
func (s *Source) watched(l *leader, now time.Duration, all bool) (w sample.Watched, ok bool) {
	w = sample.Watched{TID: l.tid, Drives: l.drives, From: l.from, Moments: l.moments}
	c, err := s.counters.counters(l.tid, all)
	l.moments, l.from = nil, now
	if err == nil && l.counted {
		w.Counted = c.ran > 0 || l.known.ran > 0 // else the kernel does not count
		w.Ran, w.Ready = grown(l.known.ran, c.ran), grown(l.known.ready, c.ready)
		if l.known.system > 0 {
			w.System = grown(l.known.system, c.system)
		}
		if c.hasIO && l.known.hasIO {
			w.Fetched, w.Chars = c.fetched-min(c.fetched, l.known.fetched), c.chars-min(c.chars, l.known.chars)
		}
	}
	l.known, l.counted = c, err == nil
	l.gone = err != nil && len(w.Moments) == 0
	return w, !l.gone
}

func grown(before, now uint64) time.Duration { return time.Duration(now - min(now, before)) }

// unstick replaces the goroutine that looks if one look does not end. The lock is held.
func (s *Source) unstick(now time.Duration) {
	if s.at == 0 || now-s.since < stuckAfter {
		return
	}
	s.stuck[s.turn] = procfile.Leave("/proc", s.at)
	s.start()
	s.at = 0
}
