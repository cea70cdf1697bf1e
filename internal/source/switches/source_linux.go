package switches

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
)

// Source follows the threads of jobs. Its methods may be called at the same time.
type Source struct {
	mu      sync.Mutex
	rings   []*ring
	jobs    map[string]*job
	threads map[int]*thread
	events  int // that are open
	closed  bool

	records  []record // of the rings, in the order of time once sorted
	held     []record // too young to be complete
	changes  []change
	sleepers []*pause      // that last and were not looked at
	empty    int           // polls in turn in which nothing happened
	recent   runs          // that ended within wakeTime of the newest reading
	lost     uint64        // since that
	failed   error         // of watch, since that
	until    time.Duration // everything before is in changes
	reported time.Duration // until, at the newest reading
	proc     proc
	random   *rand.Rand
	schedule sample.Schedule

	wake chan struct{}      // something happens again
	stop context.CancelFunc // nil until a job is followed
	done chan struct{}
}

type job struct {
	name  string
	fds   []int
	known map[int]struct{} // processes that are followed
	pids  []int            // all processes, at the newest Sync

	switches int           // since the newest reading
	busy     int           // readings in turn with too many of them
	resting  time.Duration // until then it is not followed; 0 if it is

	kernel kernelShare // of all threads
}

var errClosed = errors.New("the source of switches is closed")

// New opens the buffers of all CPUs. An error says what is missing.
func New() (*Source, error) {
	s := newState()
	var err error
	if s.rings, err = openRings(); err != nil {
		return nil, err
	}
	if _, err = s.proc.read(&thread{tid: unix.Gettid(), pid: os.Getpid()}, "syscall"); err != nil {
		_ = s.Close()
		return nil, fmt.Errorf("read the system call of a thread: %w", err)
	}
	return s, nil
}

// newState returns a Source without buffers. Its guesses are the same in each run.
func newState() *Source {
	return &Source{
		jobs: map[string]*job{}, threads: map[int]*thread{}, random: rand.New(rand.NewPCG(1, 2)),
		wake: make(chan struct{}, 1),
	}
}

// Supported returns why switches cannot be followed here, or nil.
func Supported() error {
	s, err := New()
	if err != nil {
		return err
	}
	return s.Close()
}

// Close ends everything. A closed source reads nothing.
func (s *Source) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	for _, j := range s.jobs {
		s.release(j)
	}
	for _, r := range s.rings {
		r.close()
	}
	s.mu.Unlock()
	if s.stop != nil {
		s.stop()
		<-s.done
	}
	return nil
}

// Follow follows the threads of the processes pids, and all threads and processes that they create. The threads of a
// process that another job has stay with that one.
func (s *Source) Follow(name string, pids []int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if s.jobs[name] == nil {
		if len(s.jobs) >= maxJobs {
			return fmt.Errorf("the switches of job %s are not followed: %d jobs are already", name, maxJobs)
		}
		s.jobs[name] = &job{name: name, known: map[int]struct{}{}}
	}
	if s.stop == nil {
		var ctx context.Context
		ctx, s.stop = context.WithCancel(context.Background())
		s.done = make(chan struct{})
		go s.run(ctx)
	}
	return s.sync(s.jobs[name], pids)
}

// Sync follows processes that joined the job without a parent in it. pids are all processes of the job.
func (s *Source) Sync(name string, pids []int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.jobs[name] == nil {
		return nil
	}
	return s.sync(s.jobs[name], pids)
}

func (s *Source) sync(j *job, pids []int) error {
	j.pids = slices.Clone(pids)
	if j.resting != 0 {
		return nil
	}
	s.poll(0) // the kernel follows new processes by itself: take note of those
	var problems []error
	denied := false
	for _, pid := range pids {
		if _, known := j.known[pid]; known || s.threads[pid] != nil {
			continue
		}
		j.known[pid] = struct{}{}
		err := s.adopt(j, pid)
		if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
			denied = true // a job may have hundreds
			continue
		}
		problems = append(problems, err)
	}
	if denied {
		problems = append(problems, ErrOtherUser)
	}
	for pid := range j.known {
		if !slices.Contains(pids, pid) {
			delete(j.known, pid)
		}
	}
	return errors.Join(problems...)
}

// adopt follows the threads of a process. Those that are created meanwhile are followed with their creator, or in the
// second round.
func (s *Source) adopt(j *job, pid int) error {
	for range 2 {
		names, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/[0-9]*")
		if err != nil {
			return err
		}
		for _, path := range names {
			tid, err := strconv.Atoi(filepath.Base(path))
			if err != nil || s.threads[tid] != nil {
				continue
			}
			began := monotonic() // so that its records are younger
			if err := s.attach(j, tid); errors.Is(err, unix.ESRCH) {
				continue
			} else if err != nil {
				return fmt.Errorf("follow the switches of job %s: %w", j.name, err)
			}
			th := s.add(record{
				at: began, kind: forked, tid: tid, pid: pid, name: s.proc.name(pid, tid),
			}, j)
			if th == nil {
				return fmt.Errorf("follow the switches of job %s: it has more than %d threads", j.name, maxThreads)
			}
			th.first = began
			if c, err := s.proc.cause(th); err == nil {
				s.asleep(th, c)
			}
		}
	}
	return nil
}

func (s *Source) attach(j *job, tid int) error {
	if s.events+len(s.rings) > maxEvents {
		return fmt.Errorf("more than %d perf events", maxEvents)
	}
	for _, r := range s.rings {
		fd, err := r.attach(tid)
		if err != nil {
			return err
		}
		j.fds = append(j.fds, fd)
		s.events++
	}
	return nil
}

// add follows a thread, if there is room for it.
func (s *Source) add(r record, j *job) *thread {
	if len(s.threads) >= maxThreads {
		s.lost++
		return nil
	}
	th := &thread{tid: r.tid, pid: r.pid, job: j, name: r.name}
	s.threads[r.tid] = th
	s.changes = append(s.changes, change{record: r, thread: th})
	return th
}

// asleep sets the state of a thread that was asleep before it was followed.
func (s *Source) asleep(th *thread, c cause) {
	th.first = monotonic()
	th.pause = &pause{thread: th, from: th.first, seen: true, looked: th.first, cause: c}
	s.changes = append(s.changes, change{
		record: record{at: th.first, kind: switchedOut, tid: th.tid, pid: th.pid}, thread: th, pause: th.pause,
	})
}

// Unfollow follows the threads of a job no longer.
func (s *Source) Unfollow(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if j := s.jobs[name]; j != nil && !s.closed {
		s.release(j)
		delete(s.jobs, name)
	}
}

// release ends the events of a job.
func (s *Source) release(j *job) {
	s.events -= len(j.fds)
	for _, fd := range j.fds {
		_ = unix.Close(fd) // and the kernel closes those of all threads that were created
	}
	for tid, th := range s.threads {
		if th.job == j {
			th.ended = true
			delete(s.threads, tid)
		}
	}
	j.fds = nil
	clear(j.known)
}

// limit stops following jobs that switch too often, and follows them again later. length is that of the reading.
func (s *Source) limit(length time.Duration) error {
	var problems []error
	now := monotonic()
	for _, j := range s.jobs {
		switches := j.switches
		j.switches = 0
		switch {
		case j.resting != 0 && now > j.resting:
			j.resting, j.busy = 0, 0
			problems = append(problems, s.sync(j, j.pids))
		case j.resting != 0:
		case switches <= int(maxRate*length.Seconds()):
			j.busy = 0
		default:
			if j.busy++; j.busy >= maxBusy {
				s.release(j)
				j.resting = now + rest
				s.lost++ // what its threads do from now on is not known
			}
		}
	}
	return errors.Join(problems...)
}

// run watches until the source is closed. The next reading reports a panic.
func (s *Source) run(ctx context.Context) {
	defer close(s.done)
	sample.Restart(ctx, func(err error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.failed = err
		s.lost++
	}, func() { s.watch(ctx) })
}

// watch looks at pauses until the source is closed. While nothing happens, it waits for a reading that finds something.
func (s *Source) watch(ctx context.Context) {
	beat := time.NewTicker(pollEvery)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
		}
		if !s.idles() {
			continue
		}
		beat.Stop()
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		}
		beat.Reset(pollEvery)
	}
}

// idles polls, and reports whether nothing has happened for idleAfter.
func (s *Source) idles() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.empty++
	if !s.closed && (s.poll(maxLooks) > 0 || len(s.sleepers) > 0) {
		s.empty = 0
	}
	if s.empty < int(idleAfter/pollEvery) {
		return false
	}
	s.empty = 0
	return true
}

// poll takes the records from the buffers, and looks at so many pauses at most. It returns the number of records.
func (s *Source) poll(looks int) int {
	until := monotonic() - ringDelay
	s.records = append(s.records[:0], s.held...)
	for _, r := range s.rings {
		r.drain(func(b []byte) {
			record, lost, ok := decode(b)
			s.lost += lost
			switch {
			case !ok:
			case len(s.records)+len(s.changes) >= maxRecords:
				s.lost++
			default:
				s.records = append(s.records, record)
			}
		})
	}
	slices.SortStableFunc(s.records, func(a, b record) int { return int(a.at - b.at) })
	end := len(s.records)
	for end > 0 && s.records[end-1].at > until {
		end--
	}
	for i := range s.records[:end] {
		s.apply(&s.records[i])
	}
	s.held = append(s.held[:0], s.records[end:]...)
	s.until = until
	s.look(looks)
	return len(s.records)
}

// apply changes the state of a thread.
func (s *Source) apply(r *record) {
	th := s.threads[r.tid]
	switch {
	case r.kind == forked:
		if creator := s.threads[r.parent]; th == nil && creator != nil {
			r.name = creator.name
			s.add(*r, creator.job)
		}
	case th == nil, r.at < th.first:
	case r.kind == named:
		th.name = r.name
		s.changes = append(s.changes, change{record: *r, thread: th})
	case r.kind == switchedIn && !th.on:
		c := change{record: *r, thread: th, pause: th.pause}
		if p := th.pause; p != nil {
			p.to = r.at
			if p.seen && p.looked > r.at {
				p.seen = false // it was over by then
			}
		}
		th.on, th.since, th.pause = true, r.at, nil
		s.changes = append(s.changes, c)
	case r.kind == switchedOut && (th.on || th.pause == nil), r.kind == exited:
		th.job.switches++
		c := change{record: *r, thread: th}
		if th.on {
			c.began, c.running = th.since, r.at-th.since
		}
		th.on = false
		if r.kind == exited {
			th.ended = true
			delete(s.threads, r.tid)
		} else {
			th.pause = &pause{thread: th, from: r.at, ready: r.preempted}
			if c.pause = th.pause; !r.preempted {
				s.sleepers = append(s.sleepers, th.pause)
			}
		}
		s.changes = append(s.changes, c)
	}
}

// look finds out what the oldest pauses are for.
func (s *Source) look(most int) {
	s.sleepers = slices.DeleteFunc(s.sleepers, func(p *pause) bool {
		switch {
		case p.to != 0 || p.thread.ended:
			return true
		case most == 0:
			return false
		}
		most--
		c, err := s.proc.cause(p.thread)
		if errors.Is(err, errRunning) {
			return false
		}
		if err == nil {
			p.cause, p.seen, p.looked = c, true, monotonic()
		}
		return true // a thread that cannot be read has ended, or belongs to another user by now
	})
}

// Read sets Schedule and At. The next Read reuses the memory of Schedule: copy what you keep.
func (s *Source) Read(into *sample.Sample) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	into.At = sample.Now()
	if s.closed {
		return errClosed
	}
	if s.poll(maxLooks) > 0 {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
	s.schedule = sample.Schedule{
		Until: sample.OnMonotonic(s.until), Events: s.schedule.Events[:0], Lost: s.lost, Guessed: true,
	}
	length := s.until - s.reported
	s.report()
	into.Schedule = &s.schedule
	failed := s.failed
	s.lost, s.failed = 0, nil
	return errors.Join(failed, s.limit(length))
}

func monotonic() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // cannot fail for this clock
	return time.Duration(now.Nano())
}
