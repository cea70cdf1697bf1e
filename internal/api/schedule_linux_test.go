package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/lend"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

// machine is a source of events that a test makes.
type machine struct {
	fixture.Scheduler
	owner *lend.Owner // whose processes it may report
}

// lends returns a server that lends from m.
func lends(t *testing.T, m *machine) *service {
	t.Helper()
	return serve(t, func(s *Server) {
		s.Lending(lend.NewLender(func(o *lend.Owner) (lend.Source, error) {
			m.owner = o
			return m, nil
		}))
	})
}

// eventually waits until ok is true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for start := time.Now(); !ok(); time.Sleep(time.Millisecond) {
		if time.Since(start) > 10*time.Second {
			t.Fatalf("got no %s within 10 s, want one", what)
		}
	}
}

func (m *machine) follows(job string, pid int) bool {
	pids, _ := m.Job(job)
	return len(pids) == 1 && pids[0] == pid
}

func borrow(t *testing.T, sockets ...string) *lend.Borrower {
	t.Helper()
	b, err := lend.Borrow(sockets...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

// A borrower gets the events of its process, on its clock, and at the end of a window all up to then.
func TestBorrow(t *testing.T) {
	m := &machine{}
	s := lends(t, m)
	b := borrow(t, "/nowhere/s", s.path)
	if err := b.Follow("run", nil); err != nil { // as for a program that has not begun
		t.Fatal(err)
	}
	if err := b.Sync("run", []int{os.Getpid()}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "job", func() bool { return m.follows("run", os.Getpid()) })
	if uid := uint32(os.Geteuid()); uid != 0 && (m.owner == nil || m.owner.UID != uid) {
		t.Errorf("got owner %v, want %d", m.owner, uid)
	}
	const windows = 20
	inTime := 0
	for range windows {
		at := sample.Now().Mono
		m.Report(sample.ThreadEvent{At: at, Kind: sample.ThreadIn, TID: os.Getpid(), PID: os.Getpid(), Woken: at - 1})
		var events []sample.ThreadEvent
		for try := 0; len(events) == 0; try++ {
			reading := sample.Sample{Edge: try == 0}
			if err := b.Read(&reading); err != nil {
				t.Fatal(err)
			}
			switch {
			case try == 10000:
				t.Fatal("got no event, want one")
			case reading.Schedule == nil || len(reading.Schedule.Events) == 0: // the server was late
				time.Sleep(time.Millisecond)
			case try == 0 && reading.Schedule.Until >= at:
				inTime++
				fallthrough
			default:
				events = reading.Schedule.Events
			}
		}
		if d := events[0].At - at; len(events) != 1 || d < -time.Millisecond || d > time.Millisecond ||
			events[0].At-events[0].Woken != 1 {
			t.Errorf("got %+v, want one event at %v, woken 1 ns before", events, at)
		}
	}
	if inTime < windows/2 { // a busy machine is late now and then
		t.Errorf("got all up to the end of %d windows in time, want that of %d", inTime, windows)
	}
	b.Unfollow("run")
	eventually(t, "end of the job", func() bool {
		_, followed := m.Job("run")
		return !followed
	})
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	eventually(t, "end of the source", func() bool { return m.Closed() > 0 })
}

// The server does not wait for borrowers when it stops. The borrower's program goes on without it.
func TestStopWhileLending(t *testing.T) {
	m := &machine{}
	s := lends(t, m)
	b := borrow(t, s.path)
	if err := b.Follow("run", []int{os.Getpid()}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "job", func() bool { return m.follows("run", os.Getpid()) })
	if err := s.stop(); err != nil {
		t.Error(err)
	}
	if m.Closed() == 0 {
		t.Error("got a source that is open after the server, want it closed")
	}
	eventually(t, "trouble", func() bool { return b.Trouble() != nil })
	before := time.Now()
	for range 10 {
		if err := b.Read(&sample.Sample{Edge: true}); err != nil {
			t.Error(err)
		}
	}
	if took := time.Since(before); took > 5*250*time.Millisecond { // half of the longest wait in each
		t.Errorf("got %v for the ends of ten windows, want no delay", took)
	}
}

func TestLendingRefused(t *testing.T) {
	var refused *Error
	for name, c := range map[string]struct {
		serve  func(*Server)
		path   string
		status int
		want   string
	}{
		"none":    {func(*Server) {}, "/v1/schedule?version=1", http.StatusNotFound, "does not lend"},
		"version": {lending, "/v1/schedule?version=99", http.StatusBadRequest, `version "99" of the frames is unknown`},
		"TCP": {func(s *Server) { lending(s); s.http.ConnContext = nil }, "/v1/schedule?version=1", http.StatusForbidden,
			"use the unix socket, not TCP"},
	} {
		s := serve(t, c.serve)
		if _, err := s.post(t.Context(), c.path, nil); !errors.As(err, &refused) || refused.Status != c.status ||
			!strings.Contains(refused.Text, c.want) {
			t.Errorf("%s: got %v, want %d with %q", name, err, c.status, c.want)
		}
	}
}

func lending(s *Server) {
	s.Lending(lend.NewLender(func(*lend.Owner) (lend.Source, error) { return &machine{}, nil }))
}

// The third borrower of a user is refused, until one of the others ends.
func TestBorrowersOfOneUser(t *testing.T) {
	s := serve(t, lending)
	first, _ := borrow(t, s.path), borrow(t, s.path)
	if _, err := lend.Borrow(s.path); err == nil || !strings.Contains(err.Error(), lend.ErrBusy.Error()) {
		t.Errorf("the third: got %v, want %v", err, lend.ErrBusy)
	}
	_ = first.Close()
	eventually(t, "room for another borrower", func() bool {
		b, err := lend.Borrow(s.path)
		if err == nil {
			_ = b.Close()
		}
		return err == nil
	})
}

// A client that sends anything else than orders, or ends in the middle of one, ends its loan.
func TestBadOrders(t *testing.T) {
	for _, body := range []string{"nonsense\n", `{"op":"follow"` + "\n", strings.Repeat("x", lend.MaxOrder+1), "",
		`{"op":"sync","job":"unknown","pids":[1]}` + "\n"} {
		m := &machine{}
		s := lends(t, m)
		c := s.dial(t)
		_, _ = fmt.Fprintf(c, "POST /v1/schedule?version=%d HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s",
			lend.Version, len(body), body)
		response, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			t.Errorf("%.20q: got %v, want the end of the response", body, err)
		}
		_ = response.Body.Close()
		if m.Closed() == 0 {
			t.Errorf("%.20q: got an open source, want it closed", body)
		}
	}
}

// flood is a source with more events at each reading than a socket holds.
type flood struct{ fixture.Scheduler }

func (f *flood) Read(s *sample.Sample) error {
	events := make([]sample.ThreadEvent, 50_000)
	for i := range events {
		events[i] = sample.ThreadEvent{At: sample.Now().Mono, TID: os.Getpid(), PID: os.Getpid(), Detail: 1 << 60}
	}
	s.Schedule = &sample.Schedule{Until: sample.Now().Mono, Events: events}
	return nil
}

// A client that never reads is disconnected, and its loan ends.
func TestBorrowerThatNeverReads(t *testing.T) {
	f := &flood{}
	s := serve(t, func(s *Server) {
		s.http.WriteTimeout = 300 * time.Millisecond
		s.Lending(lend.NewLender(func(*lend.Owner) (lend.Source, error) { return f, nil }))
	})
	c := s.dial(t)
	_, _ = fmt.Fprintf(c, "POST /v1/schedule?version=%d HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"+
		`{"op":"follow","job":"run","pids":[%d]}`+"\n", lend.Version, os.Getpid())
	eventually(t, "end of the loan", func() bool { return f.Closed() > 0 })
}

// asPlainUser runs this test again as another user, and returns its output.
func asPlainUser(t *testing.T, flags uintptr, variable, value string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("running a part of the test as another user needs root")
	}
	dir, err := os.MkdirTemp("", "plain")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	copied := filepath.Join(dir, "test")
	text, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = errors.Join(os.WriteFile(copied, text, 0o755), os.Chmod(dir, 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(copied, "-test.run=^"+t.Name()+"$", "-test.v")
	child.Dir = dir
	child.Env = append(os.Environ(), variable+"="+value)
	child.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}, Cloneflags: flags}
	out, err := child.CombinedOutput()
	if err != nil {
		t.Errorf("got %v, want exit code 0\n%s", err, out)
	}
	return string(out)
}

// admitAll lets every user connect, as the folder and its group do for those who may.
func admitAll(t *testing.T, s *service) {
	t.Helper()
	if err := errors.Join(os.Chmod(s.path, 0o666), os.Chmod(filepath.Dir(s.path), 0o755)); err != nil {
		t.Fatal(err)
	}
}

// A plain user gets the events of its own process, and not of the server's.
func TestPlainUserBorrows(t *testing.T) {
	const variable = "STALLSPAN_TEST_BORROW"
	if path := os.Getenv(variable); path != "" {
		b := borrow(t, path)
		if err := b.Follow("run", []int{os.Getpid(), os.Getppid()}); err != nil {
			t.Fatal(err)
		}
		var pids []int
		eventually(t, "event", func() bool {
			s := sample.Sample{Edge: true}
			if err := b.Read(&s); err != nil {
				t.Fatal(err)
			}
			if s.Schedule != nil {
				for _, e := range s.Schedule.Events {
					pids = append(pids, e.PID)
				}
			}
			return len(pids) > 0
		})
		if len(pids) != 1 || pids[0] != os.Getpid() {
			t.Errorf("got events of %v, want one of %d", pids, os.Getpid())
		}
		return
	}
	m := &machine{}
	s := lends(t, m)
	admitAll(t, s)
	reported := make(chan struct{})
	go func() {
		defer close(reported)
		for start := time.Now(); time.Since(start) < 10*time.Second; time.Sleep(time.Millisecond) {
			if pids, _ := m.Job("run"); len(pids) > 0 {
				at := sample.Now().Mono
				m.Report(sample.ThreadEvent{At: at, Kind: sample.ThreadIn, TID: os.Getpid(), PID: os.Getpid()})
				m.Report(sample.ThreadEvent{At: at, Kind: sample.ThreadIn, TID: pids[0], PID: pids[0]})
				return
			}
		}
	}()
	asPlainUser(t, 0, variable, s.path)
	<-reported
	if m.owner == nil || m.owner.UID != 65534 || m.owner.GID != 65534 {
		t.Errorf("got owner %v, want user and group 65534", m.owner)
	}
}

// The numbers of a container's processes mean others here.
func TestBorrowerInAContainer(t *testing.T) {
	const variable = "STALLSPAN_TEST_CONTAINER"
	if path := os.Getenv(variable); path != "" {
		_, err := lend.Borrow(path)
		if want := "a container numbers its processes otherwise"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		return
	}
	s := serve(t, lending)
	admitAll(t, s)
	asPlainUser(t, syscall.CLONE_NEWPID, variable, s.path)
}

// A socket on which another user listens gets no request, let alone trust.
func TestSquattedSocket(t *testing.T) {
	const variable = "STALLSPAN_TEST_SQUAT"
	if path := os.Getenv(variable); path != "" {
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		if sent, _ := io.ReadAll(c); len(sent) > 0 {
			t.Errorf("got %q, want nothing", sent)
		}
		return
	}
	dir := folder(t)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s")
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if info, err := os.Lstat(path); err != nil || info.Mode().Perm() != 0o777 {
				time.Sleep(time.Millisecond)
				continue
			}
			_, err := lend.Borrow(path)
			done <- err
			return
		}
		done <- ctx.Err()
	}()
	asPlainUser(t, 0, variable, path)
	if err := <-done; err == nil || !strings.Contains(err.Error(), "user 65534 listens there") {
		t.Errorf("got %v, want that another user listens", err)
	}
}
