package lend

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/tcp"
)

// Limits of a Borrower.
const (
	startWait   = 300 * time.Millisecond // of Borrow for the first frame
	edgeWait    = 250 * time.Millisecond // of a reading at the end of a window for its frame
	answerWait  = 5 * time.Second        // for the header of a response
	retryAfter  = 10 * time.Second       // between two requests
	maxSkew     = 10 * time.Second       // of a frame's time from ours
	maxPending  = 1 << 16                // events that were not read yet
	maxOrders   = 64                     // that were not sent yet
	maxFollowed = 4096                   // processes of a job
)

// Borrower is a source of the scheduler's events that asks a server of this machine for them. It is safe for concurrent
// use.
type Borrower struct {
	sockets []string
	origin  time.Duration
	now     func() time.Duration

	mu      sync.Mutex
	jobs    map[string]map[int]bool // processes that the server knows, by job
	link    *link                   // the newest
	tried   time.Duration           // when it was made
	closed  bool
	pending *sample.Schedule // of all frames since the previous Read; nil for none
	until   time.Duration    // of the newest frame
	news    chan struct{}    // closed at the next frame
	late    bool             // the server has sent no frame yet, or not in time and none since
	gap     bool             // a link has ended: events are missing
	opened  []tcp.Change     // connections, of all frames since the previous EachConnection
	unseen  bool             // there may have been others
	lost    error            // why the newest link has ended
}

// Borrow asks the first of these sockets that a server of root, of this user or of the machine's own service listens
// on. It waits for the first frame, but not over 300 ms: without the events of its start, a job's first window falls
// back to other evidence. The error says why there are no events. Without an error they
// may come late, or never: then readings have no Schedule.
func Borrow(sockets ...string) (*Borrower, error) {
	b := &Borrower{
		sockets: sockets, origin: -sample.OnMonotonic(0), now: func() time.Duration { return sample.Now().Mono },
		jobs: map[string]map[int]bool{}, news: make(chan struct{}), late: true,
	}
	b.mu.Lock()
	b.connect()
	l, first := b.link, b.news
	b.mu.Unlock()
	timer := time.NewTimer(startWait)
	defer timer.Stop()
	select {
	case <-first:
	case <-l.done:
		_ = b.Close() // it never fails
		return nil, b.lost
	case <-timer.C:
	}
	return b, nil
}

// Follow asks for the events of processes and their children.
func (b *Borrower) Follow(job string, pids []int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.jobs[job] != nil || len(b.jobs) == maxJobs || len(job) == 0 || len(job) > maxJob {
		return fmt.Errorf("the scheduler's events of job %q cannot be borrowed: %d jobs have them, and each needs a short "+
			"name of its own", job, len(b.jobs))
	}
	b.jobs[job] = map[int]bool{}
	b.order(&Order{Op: follow, Job: job})
	b.name(job, pids)
	return nil
}

// Sync says which processes a job has now.
func (b *Borrower) Sync(job string, pids []int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.jobs[job]
	if known == nil {
		return fmt.Errorf("the job %q is not followed: call Follow first", job)
	}
	present := make(map[int]bool, len(pids))
	for _, pid := range pids {
		present[pid] = true
	}
	maps.DeleteFunc(known, func(pid int, _ bool) bool { return !present[pid] })
	b.name(job, pids)
	return nil
}

// Unfollow ends what Follow began.
func (b *Borrower) Unfollow(job string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.jobs[job] == nil {
		return
	}
	delete(b.jobs, job)
	b.order(&Order{Op: unfollow, Job: job})
}

// Read takes what has come since the previous Read. At the edge of a window it waits for the frame that reaches up to
// now: for 250 ms at most, and not again before the server sends one. It asks again where the server has gone.
func (b *Borrower) Read(s *sample.Sample) error {
	s.At = sample.Now()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.link.over() && b.now()-b.tried >= retryAfter {
		b.connect()
	}
	if s.Edge && !b.late && b.link.works() {
		b.order(&Order{Op: now})
		b.await(b.now())
	}
	s.Schedule, b.pending = b.pending, nil
	return nil
}

// Trouble returns why no events come, or nil.
func (b *Borrower) Trouble() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lost
}

// Close ends the request and waits for its goroutines.
func (b *Borrower) Close() error {
	b.mu.Lock()
	b.closed = true
	l := b.link
	b.mu.Unlock()
	l.cancel()
	<-l.done
	return nil
}

// await waits until a frame reaches up to a moment. It gives the lock back meanwhile.
func (b *Borrower) await(moment time.Duration) {
	timer := time.NewTimer(edgeWait)
	defer timer.Stop()
	for b.until < moment && b.link.works() {
		news, done := b.news, b.link.done
		b.mu.Unlock()
		timeout := false
		select {
		case <-news:
		case <-done:
		case <-timer.C:
			timeout = true
		}
		b.mu.Lock()
		if timeout {
			b.late = b.until < moment
			return
		}
	}
}

// name sends the processes of a job that the server does not know yet. What finds no room is sent by the next Sync.
func (b *Borrower) name(job string, pids []int) {
	known := b.jobs[job]
	var fresh []int
	for _, pid := range pids {
		if pid > 0 && pid <= maxPID && !known[pid] && len(known)+len(fresh) < maxFollowed {
			fresh = append(fresh, pid)
		}
	}
	for part := range slices.Chunk(fresh, MaxPIDs) {
		if !b.order(&Order{Op: add, Job: job, PIDs: part}) {
			return
		}
		for _, pid := range part {
			known[pid] = true
		}
	}
}

// order queues an order, and reports whether there was room.
func (b *Borrower) order(o *Order) bool {
	line, err := json.Marshal(o)
	if err != nil {
		return false
	}
	select {
	case b.link.orders <- append(line, '\n'):
		return true
	default:
		return false
	}
}

// connect begins a request, and orders the jobs again.
func (b *Borrower) connect() {
	if b.closed {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	l := &link{
		cancel: cancel, orders: make(chan []byte, maxOrders),
		answered: make(chan struct{}), done: make(chan struct{}),
	}
	before := b.link
	b.link, b.tried = l, b.now()
	for job, known := range b.jobs {
		again := slices.Sorted(maps.Keys(known))
		clear(known)
		b.order(&Order{Op: follow, Job: job})
		b.name(job, again)
	}
	go func() {
		if before != nil {
			<-before.done
		}
		var err error
		if failed := sample.Protect(func() { err = l.run(ctx, b) }); failed != nil {
			err = failed
		}
		cancel()
		b.end(l, err)
	}()
}

// end notes that a link is over.
func (b *Borrower) end(l *link, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lost = err
	b.gap, b.unseen = b.gap || l.works(), true
	close(l.done)
}

// take adds a frame.
func (b *Borrower) take(s *sample.Schedule, tail []byte) error {
	changes, all, known, err := decodeChanges(tail)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if skew := s.Until - b.now(); skew > maxSkew || skew < -maxSkew {
		return fmt.Errorf("the server's clock differs by %v: run both in the same time namespace", skew)
	}
	if !ordered(s) {
		return errFrame
	}
	if b.gap {
		b.gap = false
		s.Lost++
	}
	b.connected(changes, all, known)
	b.until, b.late, b.lost = s.Until, false, nil
	if b.pending == nil {
		b.pending = s
	} else {
		p := b.pending
		room := max(min(len(s.Events), maxPending-len(p.Events)), 0)
		p.Events = append(p.Events, s.Events[:room]...)
		p.Lost += s.Lost + uint64(len(s.Events)-room)
		p.Until = s.Until
	}
	close(b.news)
	b.news = make(chan struct{})
	return nil
}

// ordered reports whether the events are in order and not later than Until.
func ordered(s *sample.Schedule) bool {
	if !slices.IsSortedFunc(s.Events, func(x, y sample.ThreadEvent) int { return int(max(-1, min(x.At-y.At, 1))) }) {
		return false
	}
	return len(s.Events) == 0 || s.Events[len(s.Events)-1].At <= s.Until
}
