package lend

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

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
	m := &fixture.Scheduler{}
	n := loan(t, Peer{UID: plainUser, GID: plainUser}, m)
	obey(t, n, Order{Op: follow, Job: "j", PIDs: []int{own, other, group, 1, 2, 1 << 21}})
	if pids, _ := m.Job("j"); len(pids) != 1 || pids[0] != own {
		t.Errorf("got processes %v followed, want %d alone", pids, own)
	}
	irq, sum := in(own, own), in(own, other)
	irq.WakerKind = sample.Interrupt // it only interrupted
	sum.Kind, sum.From = sample.ThreadSum, 1
	m.Report(in(own, own), in(other, own), in(group, own), in(1, own), in(own, other), in(own, 2), irq, sum)
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
	m := &fixture.Scheduler{}
	n := loan(t, Peer{All: true}, m)
	own := sleeper(t, plainUser, plainUser)
	obey(t, n, Order{Op: follow, Job: "j", PIDs: []int{own, os.Getpid()}})
	m.Report(in(own, os.Getpid()), in(os.Getpid(), 1))
	if events := got(t, n); len(events) != 2 || events[0].Waker != os.Getpid() {
		t.Errorf("got %v, want both events, the first woken by this process", events)
	}
}

// The number of a process goes to a process of another user after the check, before the source follows it.
func TestNumberReusedMeanwhile(t *testing.T) {
	needsRoot(t)
	first := program(t, plainUser, plainUser, "sleep", "600")
	pid := dumpable(t, first.Process.Pid)
	m := &fixture.Scheduler{}
	m.Taken = func() {
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
	m.Report(in(pid, pid))
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

	m := &fixture.Scheduler{}
	n := loan(t, Peer{UID: plainUser, GID: plainUser}, m)
	obey(t, n, Order{Op: follow, Job: "j", PIDs: []int{pid, own}})
	m.Report(in(pid, own), in(own, pid))
	if events := got(t, n); len(events) != 2 || events[1].Waker != pid {
		t.Fatalf("got %v, want both events before the program runs", events)
	}
	_, _ = io.WriteString(write, "\n")
	for start := time.Now(); time.Since(start) < 5*time.Second; time.Sleep(time.Millisecond) {
		if i, err := identify("/proc", pid); err == nil && i.uids[1] == 0 {
			break
		}
	}
	m.Report(in(pid, own), in(own, pid))
	events := got(t, n)
	if len(events) != 1 || events[0].PID != own || events[0].Waker != 0 || events[0].WakerPID != 0 {
		t.Errorf("got %v, want one event of %d without a waker", events, own)
	}
	obey(t, n, Order{Op: add, Job: "j", PIDs: []int{pid}})
	m.Report(in(pid, own))
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
	m := &fixture.Scheduler{}
	n := loan(t, Peer{UID: plainUser, GID: plainUser}, m)
	obey(t, n, Order{Op: follow, Job: "j", PIDs: []int{parent}})
	m.Report(in(pid, parent), in(parent, pid))
	if events := got(t, n); len(events) != 2 || events[1].Waker != pid {
		t.Errorf("got %v, want both events", events)
	}
	_ = child.Process.Kill()
	_ = child.Wait()
	m.Report(sample.ThreadEvent{Kind: sample.ThreadOut, TID: pid, PID: pid, State: sample.StateDead})
	if n.prune(sample.Now().Mono); len(got(t, n)) != 1 {
		t.Error("the end of a process: got no event, want one")
	}
	n.prune(sample.Now().Mono)
	if _, lent := n.lent[pid]; lent {
		t.Errorf("process %d is gone: got it lent, want it forgotten", pid)
	}
}

// The source's filter is for the peer, and missing where it may have all.
func TestOwner(t *testing.T) {
	var owners []*Owner
	l := NewLender(func(o *Owner) (Source, error) {
		owners = append(owners, o)
		return &fixture.Scheduler{}, nil
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
