package moments

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/process"
	"github.com/stallspan/stallspan/test/fixture"
)

// waitFor looks at a thread until it is in what is wanted. The kernel needs a moment to bring it there.
func waitFor(t *testing.T, tid int, wanted func(sample.In) bool) {
	t.Helper()
	var l looker
	var in sample.In
	var err error
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if in, err = l.look(tid, true); err == nil && wanted(in) {
			return
		}
	}
	t.Errorf("got %+v, %v", in, err)
}

// start starts a program that ends with the test, with all that it starts.
func start(t *testing.T, name string, arguments ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(name, arguments...)
	c.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = unix.Kill(-c.Process.Pid, unix.SIGKILL) // and what it has started
		_ = c.Wait()
	})
	return c
}

// inThread runs f again and again in a thread of its own until the test ends, and returns the number of the thread.
func inThread(t *testing.T, f func()) int {
	t.Helper()
	var stop atomic.Bool
	tid, done := make(chan int), make(chan struct{})
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		defer close(done)
		tid <- unix.Gettid()
		for !stop.Load() {
			f()
		}
	}()
	t.Cleanup(func() {
		stop.Store(true)
		<-done
	})
	return <-tid
}

func TestLook(t *testing.T) {
	if in, err := new(looker).look(1<<22, true); !errors.Is(err, errGone) {
		t.Errorf("no thread: got %+v, %v, want that it has ended", in, err)
	}
	sleeps := start(t, "sleep", "100")
	waitFor(t, sleeps.Process.Pid, func(in sample.In) bool {
		return in.State == sample.StateAsleep && in.File == sample.NoFile && in.Syscall > 0
	})
	runs := start(t, "sh", "-c", "while :; do :; done")
	waitFor(t, runs.Process.Pid, func(in sample.In) bool { return in.State == sample.StateReady })
	if err := runs.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	waitFor(t, runs.Process.Pid, func(in sample.In) bool { return in.State == sample.StateStopped })
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	reads := exec.Command("cat")
	reads.Stdin = read
	if err := reads.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, reads.Process.Pid, func(in sample.In) bool { return in.File == sample.Pipe })
	_ = write.Close()
	if err := reads.Wait(); err != nil {
		t.Error(err)
	}
}

// TestLookAtFrozen: the freezer stops a thread, in whatever call it is.
func TestLookAtFrozen(t *testing.T) {
	isStopped := func(in sample.In) bool { return in.State == sample.StateStopped }
	for _, program := range [][]string{{"sleep", "100"}, {"sh", "-c", "while :; do :; done"}} {
		t.Run(program[0], func(t *testing.T) {
			pid := start(t, program[0], program[1:]...).Process.Pid
			waitFor(t, pid, func(in sample.In) bool { return !isStopped(in) })
			thaw := fixture.Freeze(t, pid)
			waitFor(t, pid, isStopped)
			thaw()
			waitFor(t, pid, func(in sample.In) bool { return !isStopped(in) })
			_ = unix.Kill(pid, unix.SIGKILL)
		})
	}
}

// TestLookAtLock: a thread is blocked also while another one writes to the same file, where no disk is.
func TestLookAtLock(t *testing.T) {
	file, err := os.CreateTemp("/dev/shm", "stallspan")
	if err != nil {
		t.Skipf("no file system in memory: %v", err)
	}
	t.Cleanup(func() { _, _ = file.Close(), os.Remove(file.Name()) })
	done, data := make(chan struct{}), make([]byte, 4<<20)
	var writers sync.WaitGroup
	defer writers.Wait()
	defer close(done)
	tids := make(chan int, 4)
	for range cap(tids) {
		writers.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			tids <- unix.Gettid()
			for {
				select {
				case <-done:
					return
				default:
					_, _ = file.WriteAt(data, 0)
				}
			}
		})
	}
	var all []int
	for range cap(tids) {
		all = append(all, <-tids)
	}
	var l looker
	defer l.close()
	for start, blocked := time.Now(), 0; ; {
		if time.Since(start) > 20*time.Second {
			t.Fatalf("4 writers of one file were seen blocked %d times, and never by a lock", blocked)
		}
		for _, tid := range all {
			in, err := l.look(tid, true)
			if err != nil {
				t.Fatal(err)
			}
			if in.Lock {
				return
			}
			if in.State == sample.StateBlocked {
				blocked++
			}
		}
	}
}

// TestLookAtPoll: what a thread polls is found in its memory, and of an epoll in /proc.
func TestLookAtPoll(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	raw, err := c.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	ends := func(in sample.In) bool {
		return in.File == sample.Socket && in.Peer == l.Addr().String()+" over TCP"
	}
	events, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	input := &unix.EpollEvent{Events: unix.EPOLLIN}
	if err := unix.EpollCtl(events, unix.EPOLL_CTL_ADD, int(raw.Fd()), input); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // after the threads
		_ = raw.Close()
		_ = c.Close()
		_ = unix.Close(events)
	})
	fd := int32(raw.Fd())
	waitFor(t, inThread(t, func() { _, _ = unix.Poll([]unix.PollFd{{Fd: fd, Events: unix.POLLIN}}, 100) }), ends)
	waitFor(t, inThread(t, func() { _, _ = unix.EpollWait(events, make([]unix.EpollEvent, 1), 100) }), ends)
}

func TestParseCall(t *testing.T) {
	for text, want := range map[string]struct {
		number    int
		arguments [2]uint64
		ok        bool
	}{
		"0 0x3 0x7ffc 0x20000 0x0 0x0 0x0 0x7ffc 0x7f3b\n": {0, [2]uint64{3, 0x7ffc}, true},
		"-1 0x7ffcf4 0x7f3b\n":                             {-1, [2]uint64{}, true},
		"running\n":                                        {0, [2]uint64{}, false},
		"":                                                 {0, [2]uint64{}, false},
		"7 x y\n":                                          {7, [2]uint64{}, false},
	} {
		number, arguments, ok := parseCall([]byte(text))
		if ok != want.ok || ok && (number != want.number || arguments != want.arguments) {
			t.Errorf("%q: got %d, %v, %v, want %+v", text, number, arguments, ok, want)
		}
	}
}

// FuzzParse: no text of the kernel is a reason to panic.
func FuzzParse(f *testing.F) {
	f.Add([]byte("12 (a) b) S 1 2"), []byte("7 0x1 0x2"))
	f.Fuzz(func(_ *testing.T, stat, call []byte) {
		if s, ok := process.ParseStat(stat); ok {
			_, _ = stateOf(s.State)
		}
		_, _, _ = parseCall(call)
	})
}

// TestSystemOfReaders: of a reader's time in the kernel, no more counts than its bytes can take.
func TestSystemOfReaders(t *testing.T) {
	for _, test := range []struct {
		bytes uint64
		known bool
		want  float64
	}{
		{0, true, 0}, // as one that syncs
		{400 << 10, true, 0.05},
		{1 << 30, true, 0.3},
		{0, false, 0.3},
	} {
		o := other{read: time.Second}
		bytes := func(int) (uint64, bool) { return test.bytes, test.known }
		o.count(process.Stat{User: 1}, bytes)
		o.count(process.Stat{User: 71, System: 30}, bytes)
		if o.share != test.want {
			t.Errorf("%+v: got %v", test, o.share)
		}
	}
}

// TestYields: a thread that does not read spins if it runs mostly in the kernel while another one of its process reads.
func TestYields(t *testing.T) {
	for _, test := range []struct {
		user, system uint64
		reads, want  bool
	}{
		{4, 6, true, true}, {6, 4, true, false}, {1, 8, true, false}, {4, 6, false, false},
	} {
		one := &other{pid: 1}
		all := others{read: map[int]time.Duration{}}
		if test.reads {
			all.read[1] = time.Minute
		}
		one.judge(process.Stat{User: 100, System: 100})
		one.judge(process.Stat{User: 100 + test.user, System: 100 + test.system})
		if got := all.spins(one, time.Minute); got != test.want {
			t.Errorf("%d ticks and %d in the kernel, another one reads: %v: got %v, want %v", test.user, test.system,
				test.reads, got, test.want)
		}
	}
}
