package lend

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
)

// agent is a server that a test answers for.
type agent struct {
	path     string
	requests chan *call
}

// call is one request with its connection.
type call struct {
	conn   net.Conn
	orders *bufio.Scanner
}

func (c *call) accept() {
	_, _ = io.WriteString(c.conn, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
}

// send sends a frame with an event of a thread at each moment, up to until.
func (c *call) send(until time.Duration, moments ...time.Duration) {
	e := encoder{origin: -sample.OnMonotonic(0)}
	s := &sample.Schedule{Until: until}
	for _, at := range moments {
		s.Events = append(s.Events, sample.ThreadEvent{At: at, Kind: sample.ThreadIn, TID: 1, PID: 1})
	}
	_, _ = c.conn.Write(e.encode(s))
}

// order returns the next order, without its line feed.
func (c *call) order(t *testing.T) string {
	t.Helper()
	_ = c.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if !c.orders.Scan() {
		t.Fatalf("got %v, want an order", c.orders.Err())
	}
	return c.orders.Text()
}

// listen starts a server that passes requests on.
func listen(t *testing.T) *agent {
	t.Helper()
	a := &agent{path: filepath.Join(publicFolder(t), "s"), requests: make(chan *call, 10)}
	l, err := net.Listen("unix", a.path)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	var conns []net.Conn
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			conns = append(conns, conn)
			mu.Unlock()
			all.Go(func() {
				if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					a.requests <- &call{conn, bufio.NewScanner(r.Body)}
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		mu.Lock()
		for _, c := range conns {
			_ = c.Close()
		}
		mu.Unlock()
		all.Wait()
	})
	return a
}

func borrow(t *testing.T, sockets ...string) *Borrower {
	t.Helper()
	b, err := Borrow(sockets...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// accepted returns a Borrower whose request the server has accepted, and which follows processes.
func accepted(t *testing.T, a *agent, pids ...int) (*Borrower, *call) {
	t.Helper()
	calls := make(chan *call, 1)
	go func() {
		c := <-a.requests
		c.accept()
		calls <- c
	}()
	b := borrow(t, a.path)
	if err := b.Follow("run", pids); err != nil {
		t.Fatal(err)
	}
	return b, <-calls
}

func read(t *testing.T, b *Borrower, edge bool) *sample.Schedule {
	t.Helper()
	s := sample.Sample{Edge: edge}
	if err := b.Read(&s); err != nil {
		t.Fatal(err)
	}
	return s.Schedule
}

// readSome reads until something has come.
func readSome(t *testing.T, b *Borrower) *sample.Schedule {
	t.Helper()
	for start := time.Now(); time.Since(start) < 10*time.Second; time.Sleep(time.Millisecond) {
		if s := read(t, b, false); s != nil {
			return s
		}
	}
	t.Fatalf("got no frame within 10 s: %v", b.Trouble())
	return nil
}

// stuck is longer than any wait of a Borrower that has an end, also on a machine with much other work.
const stuck = 20 * time.Second

// A server that accepts connections and never answers delays a job by 300 ms, and the ends of windows not at all.
func TestServerThatHangs(t *testing.T) {
	a := listen(t)
	before := time.Now()
	b := borrow(t, a.path)
	if took := time.Since(before); took < startWait || took > stuck {
		t.Errorf("got %v until Borrow returned, want %v", took, startWait)
	}
	before = time.Now()
	for i := range 5 {
		if err := b.Follow(fmt.Sprint("job ", i), []int{1}); err != nil {
			t.Error(err)
		}
	}
	for range 10 {
		if s := read(t, b, true); s != nil {
			t.Errorf("got %+v, want nothing", s)
		}
		_ = b.Sync("job 0", []int{1, 2, 3})
	}
	if took := time.Since(before); took > 5*edgeWait {
		t.Errorf("got %v for five jobs and ten windows, want no delay", took)
	}
	c := <-a.requests // it answers after all: nothing is lost
	c.accept()
	time.Sleep(10 * time.Millisecond)
	before = time.Now()
	for range 10 {
		read(t, b, true)
	}
	if took := time.Since(before); took > 5*edgeWait {
		t.Errorf("accepted, but without a frame yet: got %v for the ends of ten windows, want no delay", took)
	}
	if o := c.order(t); o != `{"op":"follow","job":"job 0"}` {
		t.Errorf("got %s, want the first job", o)
	}
	c.send(b.now())
	readSome(t, b)
}

// A server that stops sending frames delays the end of one window by 250 ms, and no later one.
func TestServerThatFallsSilent(t *testing.T) {
	a := listen(t)
	b, c := accepted(t, a, 1)
	c.send(b.now())
	readSome(t, b)
	var took []time.Duration
	var rest time.Duration
	for range 11 {
		before := time.Now()
		read(t, b, true)
		took = append(took, time.Since(before))
		rest += took[len(took)-1]
	}
	if rest -= took[0]; took[0] < edgeWait || took[0] > stuck || rest > 5*edgeWait {
		t.Errorf("got waits of %v, want %v and none", took, edgeWait)
	}
	c.send(b.now())
	readSome(t, b)
	go func() {
		for c.orders.Scan() && !strings.Contains(c.orders.Text(), now) {
		}
		c.send(sample.Now().Mono)
	}()
	if s := read(t, b, true); s == nil {
		t.Error("it sends again: got nothing at the end of a window, want its frame")
	}
}

// A server that has gone is asked again, and what is missing counts as lost.
func TestServerThatRestarts(t *testing.T) {
	a := listen(t)
	b, c := accepted(t, a, 4, 5)
	at := b.now()
	c.send(at, at-2, at-1)
	if s := readSome(t, b); len(s.Events) != 2 || s.Lost != 0 || s.Until != at && s.Until-at > time.Millisecond {
		t.Errorf("got %+v, want two events up to %v", s, at)
	}
	_ = c.conn.Close()
	for b.Trouble() == nil {
		time.Sleep(time.Millisecond)
	}
	_ = b.Sync("run", []int{5, 6})
	read(t, b, false)
	select {
	case <-a.requests:
		t.Fatalf("got a request within %v of the first, want none", retryAfter)
	case <-time.After(50 * time.Millisecond):
	}
	b.mu.Lock()
	b.tried -= retryAfter
	b.mu.Unlock()
	read(t, b, false)
	c = <-a.requests
	c.accept()
	for _, want := range []string{`{"op":"follow","job":"run"}`, `{"op":"sync","job":"run","pids":[5,6]}`} {
		if got := c.order(t); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	c.send(b.now())
	if s := readSome(t, b); s.Lost != 1 {
		t.Errorf("got %d lost events, want 1 for the gap", s.Lost)
	}
	if err := b.Trouble(); err != nil {
		t.Errorf("got %v, want no trouble", err)
	}
}

// Only new processes are ordered, and what does not fit into one order comes in the next.
func TestOrders(t *testing.T) {
	a := listen(t)
	pids := make([]int, MaxPIDs+1)
	for i := range pids {
		pids[i] = i + 1
	}
	b, c := accepted(t, a, append(pids, -1, 0, maxPID+1)...)
	var got []int
	for _, want := range []int{0, MaxPIDs, 1} {
		o, err := ParseOrder([]byte(c.order(t)))
		if err != nil || len(o.PIDs) != want {
			t.Errorf("got %+v, %v; want %d processes", o, err, want)
		}
		got = append(got, o.PIDs...)
	}
	if !slices.Equal(got, pids) {
		t.Errorf("got processes %v, want %v", got, pids)
	}
	_ = b.Sync("run", []int{1, 2, 99})
	if o := c.order(t); o != `{"op":"sync","job":"run","pids":[99]}` {
		t.Errorf("got %s, want the new process alone", o)
	}
	_ = b.Sync("run", []int{3}) // its number has another process now
	if o := c.order(t); o != `{"op":"sync","job":"run","pids":[3]}` {
		t.Errorf("got %s, want process 3 again", o)
	}
	b.Unfollow("run")
	if o := c.order(t); o != `{"op":"unfollow","job":"run"}` {
		t.Errorf("got %s, want the end of the job", o)
	}
	if err := b.Sync("run", nil); err == nil {
		t.Error("a job that is not followed: got no error")
	}
}

// Frames that cannot be true end the request.
func TestFramesThatCannotBeTrue(t *testing.T) {
	for name, send := range map[string]func(*call, time.Duration){
		"another clock": func(c *call, now time.Duration) { c.send(now + time.Hour) },
		"not in order":  func(c *call, now time.Duration) { c.send(now, now-1, now-2) },
		"from later":    func(c *call, now time.Duration) { c.send(now-2, now-1) },
		"no frame":      func(c *call, _ time.Duration) { _, _ = c.conn.Write(bytes.Repeat([]byte{0xff}, 100)) },
	} {
		a := listen(t)
		b, c := accepted(t, a, 1)
		send(c, b.now())
		for start := time.Now(); b.Trouble() == nil && time.Since(start) < 10*time.Second; {
			time.Sleep(time.Millisecond)
		}
		if b.Trouble() == nil || read(t, b, true) != nil {
			t.Errorf("%s: got trouble %v, want some, and no reading", name, b.Trouble())
		}
	}
}

// What is not read is bounded. The rest is lost, and counted.
func TestUnreadFrames(t *testing.T) {
	b, _ := accepted(t, listen(t))
	at := b.now()
	const frames, each = 10, maxPending / 4
	for range frames {
		s := &sample.Schedule{Until: at}
		for range each {
			s.Events = append(s.Events, sample.ThreadEvent{At: at})
		}
		if err := b.take(s, nil); err != nil {
			t.Fatal(err)
		}
	}
	if s := read(t, b, false); len(s.Events) != maxPending || s.Lost != frames*each-maxPending {
		t.Errorf("got %d events and %d lost, want %d and %d", len(s.Events), s.Lost, maxPending, frames*each-maxPending)
	}
}

// The next socket is asked if a server refuses. Without any, Borrow returns at once.
func TestSockets(t *testing.T) {
	refusing, a := listen(t), listen(t)
	go func() {
		c := <-refusing.requests
		const answer = `{"error":"not here"}`
		_, _ = fmt.Fprintf(c.conn, "HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n%s", len(answer), answer)
		(<-a.requests).accept()
	}()
	b := borrow(t, "/nowhere/s", refusing.path, a.path)
	for job, want := range map[string]bool{"run": true, "": false, strings.Repeat("x", maxJob+1): false} {
		if err := b.Follow(job, nil); (err == nil) != want {
			t.Errorf("job %q: got %v", job, err)
		}
	}
	if err := b.Follow("run", nil); err == nil {
		t.Error("a job twice: got no error")
	}
	if _, err := Borrow("/nowhere/s"); !errors.Is(err, ErrNoServer) {
		t.Errorf("got %v, want that none answers", err)
	}
	denied := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", unix.EACCES)}
	if err := unanswered("/run/s", denied); err == nil ||
		err.Error() != "/run/s is open to its owner and group only: become one of them" {
		t.Errorf("got %v, want what to do about the socket's rights", err)
	}
	if _, err := Borrow(); err == nil {
		t.Error("no socket: got no error")
	}
}
