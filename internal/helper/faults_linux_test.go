//go:build amd64 || arm64

package helper

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/source/process"
	"github.com/stallspan/stallspan/internal/trust"
	"github.com/stallspan/stallspan/test/hang"

	ebpf "github.com/stallspan/stallspan/internal/source/bpf"
)

// keptReader starts a keeper and its reader, as Separate does.
func keptReader(t *testing.T) (c *Client, keeper int) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root for capabilities of a service")
	}
	s := started{Root: "/", Sockets: map[string]int{}}
	if err := s.start([]string{"read"}, trust.Processes); err != nil {
		t.Fatal(err)
	}
	end := reap(s.Keeper)
	con, err := s.inherit(roles[0], s.Sockets["read"])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { con.close(); end() })
	<-con.greeted
	return &Client{con}, s.Keeper
}

// answersAgain asks until a helper answers.
func answersAgain(t *testing.T, c *Client) {
	t.Helper()
	var list [1]process.Bytes
	if err := patiently(func() error { return c.Bytes([]process.Key{{PID: os.Getpid()}}, list[:]) }); err != nil ||
		list[0].Err != 0 {
		t.Fatalf("got %v, %v; want an answer", list, err)
	}
}

func signalTo(t *testing.T, signal syscall.Signal, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, signal); err != nil {
			t.Fatal(err)
		}
	}
}

// Whatever of helper and keepers is stopped or killed, another helper answers soon, and another spare waits. A question
// meanwhile says why nothing comes.
func TestHelpersAreReplaced(t *testing.T) {
	for name, test := range map[string]struct {
		fault func(t *testing.T, keeper, spare, helper int)
		kept  bool // the keeper stays
	}{
		"a stopped helper": {func(t *testing.T, _, _, helper int) { signalTo(t, syscall.SIGSTOP, helper) },
			true},
		"a killed helper": {func(t *testing.T, _, _, helper int) { signalTo(t, syscall.SIGKILL, helper) }, true},
		"a killed keeper": {func(t *testing.T, keeper, _, _ int) { signalTo(t, syscall.SIGKILL, keeper) }, false},
		"a stopped keeper, and a stopped helper": {func(t *testing.T, keeper, _, helper int) {
			signalTo(t, syscall.SIGSTOP, keeper, helper)
		}, false},
		"a killed spare, then its keeper": {func(t *testing.T, keeper, spare, _ int) {
			signalTo(t, syscall.SIGKILL, spare)
			for next := spare; next == spare; {
				var err error
				if next, err = childOf(keeper, keeps); err != nil {
					t.Fatal(err)
				}
			}
			signalTo(t, syscall.SIGKILL, keeper)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, keeper := keptReader(t)
			helper, err1 := childOf(keeper, "read")
			spare, err2 := childOf(keeper, keeps)
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			answersAgain(t, c)
			test.fault(t, keeper, spare, helper)
			var first error
			for end := time.Now().Add(slowest); first == nil && time.Now().Before(end); {
				first = c.Bytes([]process.Key{{PID: os.Getpid()}}, make([]process.Bytes, 1))
			}
			if !errors.Is(first, c.errLate()) && !errors.Is(first, c.errEnded("")) {
				t.Errorf("got %v, want that the helper has ended or does not respond", first)
			}
			answersAgain(t, c)
			c.mu.Lock()
			nextHelper, nextKeeper := c.helper.Pid, c.keeper.Pid
			c.mu.Unlock()
			if nextHelper == helper || (nextKeeper == keeper) != test.kept {
				t.Errorf("got helper %d of keeper %d after %d of %d", nextHelper, nextKeeper, helper, keeper)
			}
			next, err := childOf(nextKeeper, keeps)
			r, err1 := rightsOf(fmt.Sprint("/proc/", next))
			if err := errors.Join(err, err1); err != nil || r.Permitted != "0000000000080004" || r.NoNewPrivs != "1" {
				t.Errorf("the next spare: got %+v, %v; want the rights of the reader", r, err)
			}
		})
	}
}

// refusals are filters of a machine that refuses something to this process, and to those that it starts.
var refusals = map[string][]bpf.Instruction{
	"seccomp": {
		bpf.LoadAbsolute{Off: callOffset, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_SECCOMP, SkipFalse: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW},
	},
	// As a limit of tasks does. Threads are allowed: Go cannot do without them.
	"processes": {
		bpf.LoadAbsolute{Off: callOffset, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_CLONE3, SkipFalse: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)}, // its flags are in memory: clone(2) follows
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_CLONE, SkipFalse: 3},
		bpf.LoadAbsolute{Off: argumentOffset, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: unix.CLONE_THREAD, SkipTrue: 1},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(unix.EAGAIN)},
		bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW},
	},
}

// actRefused is an agent in a runtime that refuses seccomp(2) or new processes. It prints what a question says, and
// whether it has given its capabilities up.
func actRefused() error {
	if _, again := os.LookupEnv(Variable); !again {
		filter, err := bpf.Assemble(refusals[os.Args[1]])
		if err != nil {
			return err
		}
		if err := install(filter); err != nil {
			return err
		}
	}
	if err := Separate(trust.None); err != nil {
		return err
	}
	helpers, err := Inherit()
	if err != nil {
		return err
	}
	defer helpers.Close()
	var got [2]string
	if err := helpers.Reader.Bytes([]process.Key{{PID: 1}}, make([]process.Bytes, 1)); err != nil {
		got[0] = err.Error()
	}
	r, err := rightsOf("/proc/self")
	got[1] = r.Permitted
	return errors.Join(err, json.NewEncoder(os.Stdout).Encode(got))
}

// Where helpers cannot start or confine themselves, the agent goes on without capabilities, and a question says why and
// what to do.
func TestAgentWithoutHelpers(t *testing.T) {
	for what, want := range map[string]string{
		"seccomp":   "cannot work, and is tried again: install a seccomp filter",
		"processes": "cannot be started: resource temporarily unavailable: allow more tasks",
	} {
		var got [2]string
		separated(t, "refused agent", []string{what}, &got)
		if !strings.Contains(got[0], want) || strings.Trim(got[1], "0") != "" {
			t.Errorf("without %s: got %q, capabilities %s; want %q, and none", what, got[0], got[1], want)
		}
	}
}

// While programs are loaded, other questions of the agent are answered, and none holds a lock for that.
func TestLoadsDoNotWait(t *testing.T) {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	load := make(chan struct{})
	closed := 0
	open := fakes(&closed)
	s := &tracings{held: map[uint32]ebpf.Tracing{},
		send: func(frame []byte, _ []int) error { return send(ends[1], frame, nil) },
		open: func(want ebpf.Wanted) (ebpf.Tracing, error) { <-load; return open(want) }}
	served := make(chan error, 1)
	go func() { served <- serve(ends[1], s.answer) }()
	file := os.NewFile(uintptr(ends[0]), "socket")
	conn, err := net.FileConn(file)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	tracer := &Tracer{connect(conn, roles[1].does)}
	opened := make(chan error, 1)
	open1 := func() { _, err := tracer.Open(ebpf.Wanted{}); opened <- err }
	go open1()
	for held := 0; held == 0; time.Sleep(time.Millisecond) { // until it loads
		s.mu.Lock()
		held = len(s.held)
		s.mu.Unlock()
	}
	other := &traced{tracer: tracer, handle: 77}
	if err := other.Flush(); !errors.Is(err, syscall.EBADF) {
		t.Errorf("got %v, want the answer about a tracing that does not exist", err)
	}
	if err := other.Ended(); err != nil {
		t.Errorf("got %v, want nil", err)
	}
	close(load)
	if err := <-opened; err != nil {
		t.Errorf("the load: got %v", err)
	}
	tracer.close()
	if err := <-served; err != nil {
		t.Error(err)
	}
	_ = unix.Close(ends[1])
}

// A process that hangs in the kernel costs an answer a wait, and no other process its bytes.
func TestBytesSkipWhatHangs(t *testing.T) {
	s := &server{reader: process.NewDirect("/proc")}
	p := hang.Start(t, hang.Options{How: hang.Exec})
	ask := func() []process.Bytes {
		q := question{op: opBytes, number: 1, keys: []process.Key{{PID: p.PID}, {PID: os.Getpid()}}}
		frame, err := s.answer(q.append(nil))
		var a content
		if err != nil || a.parse(frame[headerBytes:], opBytes) != nil || len(a.bytes) != 2 {
			t.Fatalf("got %x, %v, want an answer", frame, err)
		}
		return a.bytes
	}
	for range 3 {
		got := ask()
		if got[0].Err != syscall.ETIMEDOUT {
			t.Errorf("a process that hangs: got %+v, want %v", got[0], syscall.ETIMEDOUT)
		}
		if got[1].Err != 0 || got[1].Chars == 0 {
			t.Errorf("another process: got %+v, want its bytes", got[1])
		}
	}
	p.Release()
	for end := time.Now().Add(time.Minute); ask()[0].Err != 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after the hang: got %+v, want its bytes", ask()[0])
		}
	}
}
