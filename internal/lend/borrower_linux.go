package lend

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
)

// Limits of a Borrower.
const (
	startWait   = 100 * time.Millisecond // of Borrow for the first frame
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
	lost    error            // why the newest link has ended
}

// Borrow asks the first of these sockets that a server of root, of this user or of the machine's own service listens
// on. It waits for the first frame, but not over 100 ms: without the events of its start, a job's first window falls
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
		err := l.run(ctx, b)
		cancel()
		b.end(l, err)
	}()
}

// end notes that a link is over.
func (b *Borrower) end(l *link, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lost = err
	b.gap = b.gap || l.works()
	close(l.done)
}

// take adds a frame.
func (b *Borrower) take(s *sample.Schedule) error {
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

// link is one request to a server, with its response.
type link struct {
	cancel   context.CancelFunc
	orders   chan []byte
	answered chan struct{} // closed when a server has accepted the request, or all have refused
	refused  error         // valid once answered is closed
	done     chan struct{} // closed after the response
}

// works reports whether a server has accepted the request and the response has not ended.
func (l *link) works() bool {
	if l.over() {
		return false
	}
	select {
	case <-l.answered:
		return l.refused == nil
	default:
		return false
	}
}

func (l *link) over() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// run asks one socket after another, and takes frames until the response ends.
func (l *link) run(ctx context.Context, b *Borrower) error {
	why := fmt.Errorf("%w on %s", ErrNoServer, strings.Join(b.sockets, " or "))
	for _, path := range b.sockets {
		response, ended, err := l.ask(ctx, path)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ECONNREFUSED) {
				why = fmt.Errorf("%s: %w", path, err)
			}
			continue
		}
		close(l.answered)
		err = l.receive(response, b)
		_ = response.Close()
		ended()
		return fmt.Errorf("%s sends no more events of the scheduler, check that it runs: %w", path, err)
	}
	l.refused = fmt.Errorf("no agent lends the scheduler's events: %w", why)
	close(l.answered)
	return l.refused
}

// ask requests frames on a socket. Call ended after the response was closed: it waits for the writer of orders.
func (l *link) ask(ctx context.Context, path string) (response io.ReadCloser, ended func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(answerWait, cancel)
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return dialTrusted(ctx, path) }
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true, DisableCompression: true,
		MaxResponseHeaderBytes: MaxOrder}
	body, orders := io.Pipe()
	var writer sync.WaitGroup
	ended = func() {
		timer.Stop()
		cancel()
		_ = body.Close()
		writer.Wait()
	}
	url := "http://localhost" + Path + "?version=" + strconv.Itoa(Version)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		ended()
		return nil, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := transport.RoundTrip(request)
	if err != nil {
		ended()
		return nil, nil, err
	}
	timer.Stop()
	if answer.StatusCode != http.StatusOK {
		err := refusal(answer)
		_ = answer.Body.Close()
		ended()
		return nil, nil, err
	}
	writer.Go(func() { l.write(ctx, orders) }) // not before: the next server needs all orders if this one refuses
	return answer.Body, ended, nil
}

// refusal returns the error of a response.
func refusal(answer *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(answer.Body, MaxOrder))
	var refused struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(bytes.TrimSpace(text), &refused) != nil || refused.Error == "" {
		return fmt.Errorf("it answers with %s", answer.Status)
	}
	return errors.New(refused.Error)
}

// write passes orders on until ctx ends or the request does.
func (l *link) write(ctx context.Context, to *io.PipeWriter) {
	defer func() { _ = to.Close() }()
	for {
		select {
		case line := <-l.orders:
			if _, err := to.Write(line); err != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// receive takes frames until there are no more.
func (l *link) receive(from io.Reader, b *Borrower) error {
	var buf []byte
	for {
		frame, err := readFrame(from, buf)
		if err != nil {
			return err
		}
		buf = frame
		s, err := decode(frame, b.origin)
		if err != nil {
			return err
		}
		if err := b.take(s); err != nil {
			return err
		}
	}
}

// dialTrusted connects to a server that may be trusted with what a job does, and not to invent it.
func dialTrusted(ctx context.Context, path string) (net.Conn, error) {
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	socket, ok := c.(*net.UnixConn)
	if !ok {
		_ = c.Close()
		return nil, errors.New("it is no unix socket")
	}
	cred, pidfd, err := peerOf(socket)
	if pidfd >= 0 {
		_ = unix.Close(pidfd)
	}
	if err == nil && !trusted(path, cred.Uid, uint32(os.Geteuid())) {
		err = fmt.Errorf("user %d listens there, who is neither root nor this user: remove the socket", cred.Uid)
	}
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// trusted reports whether a server's user is root, this user, or the owner of the socket's folder where root gave it: a
// folder such as /run/stallspan, in one where only root can make it.
func trusted(path string, server, self uint32) bool {
	if server == 0 || server == self {
		return true
	}
	folder := filepath.Dir(filepath.Clean(path))
	var given, above unix.Stat_t
	if unix.Lstat(folder, &given) != nil || unix.Lstat(filepath.Dir(folder), &above) != nil {
		return false
	}
	const othersWrite = unix.S_IWGRP | unix.S_IWOTH
	return above.Mode&unix.S_IFMT == unix.S_IFDIR && above.Uid == 0 && above.Mode&othersWrite == 0 &&
		given.Mode&unix.S_IFMT == unix.S_IFDIR && given.Uid == server
}
