package lend

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const plainUser = 65534 // user and group

// machine is a source that reports what a test puts into it, of any process: it has no filter of its own.
type machine struct {
	mu      sync.Mutex
	events  []sample.ThreadEvent
	jobs    map[string][]int
	taken   func() // called while processes are followed
	reads   int
	closed  int
	refused error
}

func (m *machine) Follow(job string, pids []int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.jobs == nil {
		m.jobs = map[string][]int{}
	}
	m.jobs[job] = pids
	if m.taken != nil {
		m.taken()
	}
	return m.refused
}

func (m *machine) Sync(job string, pids []int) error { return m.Follow(job, pids) }

func (m *machine) Unfollow(job string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.jobs, job)
}

func (m *machine) Read(s *sample.Sample) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	s.At = sample.Now()
	s.Schedule = &sample.Schedule{Until: s.At.Mono, Events: m.events}
	m.events = nil
	return nil
}

func (m *machine) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed++
	return nil
}

// report adds an event of now.
func (m *machine) report(events ...sample.ThreadEvent) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range events {
		e.At = sample.Now().Mono
		m.events = append(m.events, e)
	}
}

func (m *machine) opener() Opener { return func(*Owner) (Source, error) { return m, nil } }

func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("starting processes of other users needs root")
	}
}

// program starts a program as a user. It ends with the test.
func program(t *testing.T, uid, gid uint32, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: gid}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_, _ = cmd.Process.Wait() // a test may have waited
	})
	return cmd
}

func sleeper(t *testing.T, uid, gid uint32) int {
	t.Helper()
	return program(t, uid, gid, "sleep", "600").Process.Pid
}

// loan returns a loan for a user, from a source.
func loan(t *testing.T, peer Peer, m *machine) *Loan {
	t.Helper()
	l, err := NewLender(m.opener()).Admit(peer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	if err := l.start(); err != nil {
		t.Fatal(err)
	}
	return l
}

// got returns the events in the loan's next frame.
func got(t *testing.T, n *Loan) []sample.ThreadEvent {
	t.Helper()
	var s *sample.Schedule
	err := n.frame(func(frame []byte) (err error) {
		s, err = decode(frame[lengthBytes:], 0)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return s.Events
}

func obey(t *testing.T, n *Loan, o Order) {
	t.Helper()
	if err := n.obey(&o); err != nil {
		t.Fatal(err)
	}
}

func in(pid, waker int) sample.ThreadEvent {
	return sample.ThreadEvent{Kind: sample.ThreadIn, TID: pid, PID: pid, Woken: 1, Waker: waker, WakerPID: waker,
		WakerKind: sample.UserThread}
}

func pidsOf(events []sample.ThreadEvent) (pids []int) {
	for i := range events {
		pids = append(pids, events[i].PID)
	}
	return pids
}

func TestMayHave(t *testing.T) {
	own := identity{uids: [3]uint32{7, 7, 7}, gids: [3]uint32{8, 8, 8}, owner: 7}
	peer := Peer{UID: 7, GID: 8}
	if !peer.mayHave(&own) {
		t.Error("an own process: got false, want true")
	}
	for name, change := range map[string]func(*identity){
		"real user":      func(i *identity) { i.uids[0] = 0 },
		"effective user": func(i *identity) { i.uids[1] = 0 },
		"saved user":     func(i *identity) { i.uids[2] = 0 },
		"real group":     func(i *identity) { i.gids[0] = 0 },
		"set group":      func(i *identity) { i.gids[1] = 4 },
		"saved group":    func(i *identity) { i.gids[2] = 4 },
		"capability":     func(i *identity) { i.permitted = 1 << unix.CAP_NET_RAW },
		"not dumpable":   func(i *identity) { i.owner = 0 },
		"of another":     func(i *identity) { *i = identity{uids: [3]uint32{9, 9, 9}, gids: i.gids, owner: 9} },
	} {
		other := own
		change(&other)
		if peer.mayHave(&other) {
			t.Errorf("%s: got true, want false", name)
		}
	}
	root := Peer{}
	if root.mayHave(&own) {
		t.Error("root without the right to trace: got true, want false")
	}
	root.All = true
	if !root.mayHave(&own) {
		t.Error("root with the right to trace: got false, want true")
	}
}

func TestIdentify(t *testing.T) {
	needsRoot(t)
	i, err := identify("/proc", sleeper(t, plainUser, 7))
	want := identity{uids: [3]uint32{plainUser, plainUser, plainUser}, gids: [3]uint32{7, 7, 7}, owner: plainUser}
	for start := time.Now(); i.owner != plainUser && time.Since(start) < 5*time.Second; { // before exec it is not dumpable
		time.Sleep(time.Millisecond)
		i, err = identify("/proc", sleeper(t, plainUser, 7))
	}
	if err != nil || i != want {
		t.Errorf("got %+v, %v; want %+v", i, err, want)
	}
	if i, err = identify("/proc", os.Getpid()); err != nil || !i.root() {
		t.Errorf("got %+v, %v; want root with the right to trace", i, err)
	}
	for _, bad := range []string{"", "Uid:\t1\t1\n", "Uid:\t1\t1\t1\t1\nGid:\t1\t1\t1\t1\nCapPrm:\t0\n",
		"Uid:\t-1\t1\t1\t1\nGid:\t1\t1\t1\t1\nCapPrm:\t0\nCapEff:\t0\n"} {
		if err := new(identity).parse([]byte(bad)); err == nil {
			t.Errorf("%q: got no error", bad)
		}
	}
}

// dumpable waits until a program that was started as another user has replaced the one that started it.
func dumpable(t *testing.T, pid int) int {
	t.Helper()
	for start := time.Now(); time.Since(start) < 5*time.Second; time.Sleep(time.Millisecond) {
		if owner, err := ownerOf("/proc", pid); err == nil && owner == plainUser {
			return pid
		}
	}
	t.Fatalf("process %d: got no program of user %d within 5 s", pid, plainUser)
	return 0
}

// Processes of others are not followed, their events are not sent, and nothing shows their numbers.
func TestProcessesOfOthers(t *testing.T) {
	needsRoot(t)
	own, group := dumpable(t, sleeper(t, plainUser, plainUser)), dumpable(t, sleeper(t, plainUser, 7))
	other := sleeper(t, 0, 0)
	m := &machine{}
	n := loan(t, Peer{UID: plainUser, GID: plainUser}, m)
	obey(t, n, Order{Op: follow, Job: "j", PIDs: []int{own, other, group, 1, 2, 1 << 21}})
	if pids := m.jobs["j"]; len(pids) != 1 || pids[0] != own {
		t.Errorf("got processes %v followed, want %d alone", pids, own)
	}
	irq, sum := in(own, own), in(own, other)
	irq.WakerKind = sample.Interrupt // it only interrupted
	sum.Kind, sum.From = sample.ThreadSum, 1
	m.report(in(own, own), in(other, own), in(group, own), in(1, own), in(own, other), in(own, 2), irq, sum)
	events := got(t, n)
	if pids := pidsOf(events); len(pids) != 5 {
		t.Fatalf("got events of %v, want five of %d", pids, own)
	}
	for i, e := range events {
		want := 0
		if i == 0 {
			want = own
		}
		if e.PID != own || e.Waker != want || e.WakerPID != want {
			t.Errorf("event %d: got process %d woken by %d in %d; want %d, and %d in %d", i, e.PID, e.Waker, e.WakerPID, own,
				want, want)
		}
	}
}

// Root has them all.
func TestProcessesForRoot(t *testing.T) {
	m := &machine{}
	n := loan(t, Peer{All: true}, m)
	own := sleeper(t, plainUser, plainUser)
	obey(t, n, Order{Op: follow, Job: "j", PIDs: []int{own, os.Getpid()}})
	m.report(in(own, os.Getpid()), in(os.Getpid(), 1))
	if events := got(t, n); len(events) != 2 || events[0].Waker != os.Getpid() {
		t.Errorf("got %v, want both events, the first woken by this process", events)
	}
}

// The number of a process goes to a process of another user after the check, before the source follows it.
func TestNumberReusedMeanwhile(t *testing.T) {
	needsRoot(t)
	first := program(t, plainUser, plainUser, "sleep", "600")
	pid := dumpable(t, first.Process.Pid)
	m := &machine{}
	m.taken = func() {
		_ = first.Process.Kill()
		_ = first.Wait()
		for range 100 { // another process may take the number first
			if os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0) != nil {
				t.Skip("the kernel does not let tests choose numbers of processes")
			}
			if sleeper(t, 0, 0) == pid {
				return
			}
		}
		t.Skipf("no process got the number %d again", pid)
	}
	n := loan(t, Peer{UID: plainUser, GID: plainUser}, m)
	obey(t, n, Order{Op: follow, Job: "j", PIDs: []int{pid}})
	if _, lent := n.lent[pid]; lent || n.named() > 0 {
		t.Errorf("got process %d lent, want none", pid)
	}
	m.report(in(pid, pid))
	if events := got(t, n); len(events) > 0 {
		t.Errorf("got %v, want no event of a process of root", events)
	}
}

// A process that runs a setuid program is lent no more, and is not named as a waker. Neither is it lent again once that
// program has given up its rights.
func TestSetuidProgram(t *testing.T) {
	needsRoot(t)
	dir := publicFolder(t)
	setuid := filepath.Join(dir, "sleep")
	copyProgram(t, "sleep", setuid, 0o4755)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = read.Close(); _ = write.Close() }()
	cmd := exec.Command("sh", "-c", "read line; exec "+setuid+" 600")
	cmd.Stdin = read
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: plainUser, Gid: plainUser}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	pid := dumpable(t, cmd.Process.Pid)
	own := dumpable(t, sleeper(t, plainUser, plainUser))

	m := &machine{}
	n := loan(t, Peer{UID: plainUser, GID: plainUser}, m)
	obey(t, n, Order{Op: follow, Job: "j", PIDs: []int{pid, own}})
	m.report(in(pid, own), in(own, pid))
	if events := got(t, n); len(events) != 2 || events[1].Waker != pid {
		t.Fatalf("got %v, want both events before the program runs", events)
	}
	_, _ = io.WriteString(write, "\n")
	for start := time.Now(); time.Since(start) < 5*time.Second; time.Sleep(time.Millisecond) {
		if i, err := identify("/proc", pid); err == nil && i.uids[1] == 0 {
			break
		}
	}
	m.report(in(pid, own), in(own, pid))
	events := got(t, n)
	if len(events) != 1 || events[0].PID != own || events[0].Waker != 0 || events[0].WakerPID != 0 {
		t.Errorf("got %v, want one event of %d without a waker", events, own)
	}
	obey(t, n, Order{Op: add, Job: "j", PIDs: []int{pid}})
	m.report(in(pid, own))
	if events := got(t, n); len(events) > 0 {
		t.Errorf("named again: got %v, want none", events)
	}
}

// publicFolder returns a folder that every user may enter.
func publicFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "lend")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func copyProgram(t *testing.T, name, to string, mode os.FileMode) {
	t.Helper()
	from, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, text, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Chmod(to, uint32(mode)); err != nil {
		t.Fatal(err)
	}
}

// Children that were not named are lent: those that live, and those that are gone before their events are read.
func TestChildren(t *testing.T) {
	needsRoot(t)
	parent, child := dumpable(t, sleeper(t, plainUser, plainUser)), program(t, plainUser, plainUser, "sleep", "600")
	pid := dumpable(t, child.Process.Pid)
	m := &machine{}
	n := loan(t, Peer{UID: plainUser, GID: plainUser}, m)
	obey(t, n, Order{Op: follow, Job: "j", PIDs: []int{parent}})
	m.report(in(pid, parent), in(parent, pid))
	if events := got(t, n); len(events) != 2 || events[1].Waker != pid {
		t.Errorf("got %v, want both events", events)
	}
	_ = child.Process.Kill()
	_ = child.Wait()
	m.report(sample.ThreadEvent{Kind: sample.ThreadOut, TID: pid, PID: pid, State: sample.StateDead})
	if n.prune(sample.Now().Mono); len(got(t, n)) != 1 {
		t.Error("the end of a process: got no event, want one")
	}
	n.prune(sample.Now().Mono)
	if _, lent := n.lent[pid]; lent {
		t.Errorf("process %d is gone: got it lent, want it forgotten", pid)
	}
}

// A loan ends when none of its processes has run for long, so that it does not keep others out.
func TestIdleLoan(t *testing.T) {
	n := loan(t, Peer{All: true}, &machine{})
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
	m := &machine{}
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
	m.refused = errors.New("no room")
	if err := n.obey(&Order{Op: add, Job: "0"}); !errors.Is(err, m.refused) {
		t.Errorf("got %v, want %v", err, m.refused)
	}
	for pid := range maxLent + 10 { // many children
		n.lend(pid + 1<<23)
	}
	if len(n.lent) != maxLent {
		t.Errorf("got %d processes lent, want %d", len(n.lent), maxLent)
	}
	m.report(in(os.Getpid(), 0))
	if err := n.frame(func(frame []byte) error {
		if s, err := decode(frame[lengthBytes:], 0); err != nil || s.Lost != 1 || len(s.Events) > 0 {
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
	m := &machine{}
	l := NewLender(m.opener())
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
	l := NewLender((&machine{}).opener())
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

// The source's filter is for the peer, and missing where it may have all.
func TestOwner(t *testing.T) {
	var owners []*Owner
	l := NewLender(func(o *Owner) (Source, error) {
		owners = append(owners, o)
		return &machine{}, nil
	})
	ended := make(chan Order)
	close(ended)
	for _, peer := range []Peer{{UID: 7, GID: 8}, {All: true}} {
		n, err := l.Admit(peer)
		if err == nil {
			err = n.Serve(t.Context(), ended, ignore)
		}
		if err != nil {
			t.Fatal(err)
		}
		n.Close()
	}
	if owners[0] == nil || *owners[0] != (Owner{7, 8}) || owners[1] != nil {
		t.Errorf("got owners %v, want 7 and 8, and none", owners)
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
	m := &machine{}
	n := loan(t, Peer{All: true}, m)
	blocked, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	stop := serve(t, n, nil, func([]byte) error {
		once.Do(func() { close(blocked) })
		<-release
		return nil
	})
	<-blocked
	m.mu.Lock()
	before := m.reads
	m.mu.Unlock()
	time.Sleep(3 * frameInterval)
	m.mu.Lock()
	after := m.reads
	m.mu.Unlock()
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
	n := loan(t, Peer{All: true}, &machine{})
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
	if err := loan(t, Peer{All: true}, &machine{}).Serve(t.Context(), orders, ignore); err != nil {
		t.Errorf("orders have ended: got %v, want nil", err)
	}
	gone := errors.New("gone")
	n := loan(t, Peer{All: true}, &machine{})
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
