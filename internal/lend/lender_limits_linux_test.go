package lend

import (
	"context"
	"errors"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

// A loan ends when none of its processes has run for long, so that it does not keep others out.
func TestIdleLoan(t *testing.T) {
	n := loan(t, Peer{All: true}, &fixture.Scheduler{})
	n.idle = time.Hour
	if n.prune(time.Hour + idleLimit) {
		t.Error("within the limit: got an end, want none")
	}
	if !n.prune(time.Hour + idleLimit + 1) {
		t.Error("over the limit: got no end, want one")
	}
	obey(t, n, Order{Op: follow, Job: "j", PIDs: []int{os.Getpid()}})
	if n.prune(2 * time.Hour) {
		t.Error("with a process that runs: got an end, want none")
	}
}

func TestLimitsOfALoan(t *testing.T) {
	m := &fixture.Scheduler{}
	n := loan(t, Peer{All: true}, m)
	for i := range maxJobs {
		obey(t, n, Order{Op: follow, Job: strconv.Itoa(i)})
	}
	for _, o := range []Order{{Op: follow, Job: "more"}, {Op: follow, Job: "0"}, {Op: add, Job: "unknown"}} {
		if err := n.obey(&o); err == nil {
			t.Errorf("%+v: got no error", o)
		}
	}
	obey(t, n, Order{Op: unfollow, Job: "0"})
	obey(t, n, Order{Op: follow, Job: "0"})
	m.Refused = errors.New("no room")
	if err := n.obey(&Order{Op: add, Job: "0"}); !errors.Is(err, m.Refused) {
		t.Errorf("got %v, want %v", err, m.Refused)
	}
	for pid := range maxLent + 10 { // many children
		n.lend(pid + 1<<23)
	}
	if len(n.lent) != maxLent {
		t.Errorf("got %d processes lent, want %d", len(n.lent), maxLent)
	}
	m.Report(in(os.Getpid(), 0))
	if err := n.frame(func(frame []byte) error {
		if s, _, err := decode(frame[lengthBytes:], 0); err != nil || s.Lost != 1 || len(s.Events) > 0 {
			t.Errorf("without room: got %+v, %v; want one lost event", s, err)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
	for pid := range maxLent + 10 {
		n.revoke(pid)
	}
	if len(n.revoked) > maxLent {
		t.Errorf("got %d processes remembered, want at most %d", len(n.revoked), maxLent)
	}
}

// Thousands of programs ask at once, of two hundred users.
func TestManyBorrowers(t *testing.T) {
	m := &fixture.Scheduler{}
	l := NewLender(opener(m))
	var mu sync.Mutex
	var loans []*Loan
	ofUser := map[uint32]int{}
	var all sync.WaitGroup
	for i := range 2000 {
		all.Go(func() {
			uid := uint32(i % 200)
			n, err := l.Admit(Peer{UID: uid})
			if err != nil && !errors.Is(err, ErrBusy) {
				t.Error(err)
			}
			if err == nil {
				mu.Lock()
				loans, ofUser[uid] = append(loans, n), ofUser[uid]+1
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(loans) != maxBorrowers {
		t.Errorf("got %d borrowers, want %d", len(loans), maxBorrowers)
	}
	for uid, n := range ofUser {
		if n > maxOfUser {
			t.Errorf("user %d: got %d borrowers, want at most %d", uid, n, maxOfUser)
		}
	}
	for _, n := range loans {
		n.Close()
	}
	if len(l.borrowers) > 0 {
		t.Errorf("got %d borrowers left, want none", len(l.borrowers))
	}
}

// A user who asks again and again makes the server load programs: that is limited, for each user and for all.
func TestStartsAreLimited(t *testing.T) {
	l := NewLender(opener(&fixture.Scheduler{}))
	admitted := map[uint32]int{}
	for i := range 10 * maxStarts {
		uid := uint32(i % 2 * 1000 * (i / 100)) // half of them are of user 0
		if n, err := l.Admit(Peer{UID: uid}); err == nil {
			n.Close()
			admitted[uid]++
		}
	}
	all := 0
	for uid, n := range admitted {
		all += n
		if n > startsOfUser {
			t.Errorf("user %d: got %d starts, want at most %d", uid, n, startsOfUser)
		}
	}
	if all != maxStarts || len(l.starts) > maxStarts {
		t.Errorf("got %d starts, and %d remembered, want %d", all, len(l.starts), maxStarts)
	}
	if err := l.enter(5, sample.Now().Mono+startsPeriod+time.Second); err != nil {
		t.Errorf("a minute later: got %v, want no error", err)
	}
}

// A source that cannot be opened ends the loan, and leaves no borrower behind.
func TestNoSource(t *testing.T) {
	why := errors.New("no CAP_BPF")
	l := NewLender(func(*Owner) (Source, error) { return nil, why })
	for range maxBorrowers + 1 {
		n, err := l.Admit(Peer{})
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Serve(t.Context(), nil, nil); !errors.Is(err, why) {
			t.Fatalf("got %v, want %v", err, why)
		}
		n.Close()
	}
}

func ignore([]byte) error { return nil }

// serve runs a loan until the function that it returns is called.
func serve(t *testing.T, n *Loan, orders <-chan Order, send func([]byte) error) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Serve(ctx, orders, send) }()
	return sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
}

// While a borrower does not read, the server keeps nothing for it: the events stay in the source, which has a bound.
func TestSlowReader(t *testing.T) {
	m := &fixture.Scheduler{}
	n := loan(t, Peer{All: true}, m)
	blocked, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	stop := serve(t, n, nil, func([]byte) error {
		once.Do(func() { close(blocked) })
		<-release
		return nil
	})
	<-blocked
	before := m.Reads()
	time.Sleep(3 * frameInterval)
	after := m.Reads()
	close(release)
	if err := stop(); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if before != after {
		t.Errorf("got %d readings while the borrower did not read, want none", after-before)
	}
}

// A borrower that floods the server with orders does not make it check processes without end.
func TestFloodOfOrders(t *testing.T) {
	n := loan(t, Peer{All: true}, &fixture.Scheduler{})
	orders := make(chan Order)
	frames := 0
	stop := serve(t, n, orders, func([]byte) error { frames++; return nil })
	obeyed, start := 0, time.Now()
	for time.Since(start) < 5*frameInterval {
		select {
		case orders <- Order{Op: now}:
			obeyed++
		case <-time.After(frameInterval):
		}
	}
	if err := stop(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if most := 7 * budget / orderCost; obeyed == 0 || obeyed > most {
		t.Errorf("got %d orders obeyed in %v, want 1 to %d", obeyed, 5*frameInterval, most)
	}
	if frames < obeyed {
		t.Errorf("got %d frames, want one for each of %d orders", frames, obeyed)
	}
}

// Serve ends when the borrower ends.
func TestServeEnds(t *testing.T) {
	orders := make(chan Order)
	close(orders)
	if err := loan(t, Peer{All: true}, &fixture.Scheduler{}).Serve(t.Context(), orders, ignore); err != nil {
		t.Errorf("orders have ended: got %v, want nil", err)
	}
	gone := errors.New("gone")
	n := loan(t, Peer{All: true}, &fixture.Scheduler{})
	if err := n.Serve(t.Context(), nil, func([]byte) error { return gone }); !errors.Is(err, gone) {
		t.Errorf("got %v, want %v", err, gone)
	}
}

func TestParseOrder(t *testing.T) {
	o, err := ParseOrder([]byte(`{"op":"follow","job":"run","pids":[1,4194304]}`))
	if err != nil || o.Op != follow || o.Job != "run" || len(o.PIDs) != 2 {
		t.Errorf("got %+v, %v; want the order", o, err)
	}
	for _, bad := range []string{``, `{`, `{"op":"drop","job":"j"}`, `{"op":"follow"}`, `{"op":"follow","job":"j","pids":[0]}`,
		`{"op":"follow","job":"j","pids":[-1]}`, `{"op":"follow","job":"j","pids":[4194305]}`,
		`{"op":"sync","job":"` + string(make([]byte, maxJob+1)) + `"}`} {
		if o, err := ParseOrder([]byte(bad)); err == nil {
			t.Errorf("%q: got %+v, want an error", bad, o)
		}
	}
}
