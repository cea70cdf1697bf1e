//go:build linux && (amd64 || arm64)

package bpf

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
	"github.com/stallspan/stallspan/test/slowdisk"
)

// forkProgram has a thread, not the first one, that starts another program.
func forkProgram(f facts) {
	child := 0
	tid, wait := thread(func() {
		cmd := exec.Command("/bin/sh", "-c", "exit 0")
		must(cmd.Start())
		child = cmd.Process.Pid
		must(cmd.Wait())
	})
	wait()
	f["creator"], f["child"] = tid, child
}

func TestForkedProcess(t *testing.T) {
	s := opened(t, defaults)
	f, events := trace(t, s, "fork")
	checkChain(t, events)
	child := of(events, f["child"])
	if len(child) < 3 {
		t.Fatalf("got %d events of the child, want its beginning, run and end", len(child))
	}
	began, in, end := child[0], child[1], child[len(child)-1]
	if began.Kind != sample.ThreadBegan || began.Creator != f["creator"] || began.Job != "job" || began.PID != f["child"] {
		t.Errorf("got %+v, want the beginning of process %d in job, created by %d", began, f["child"], f["creator"])
	}
	if in.Kind != sample.ThreadIn || in.Woken != began.At || in.Waker != f["creator"] {
		t.Errorf("got %+v, want that it was ready from its beginning, because of %d", in, f["creator"])
	}
	if end.Kind != sample.ThreadOut || end.State != sample.StateDead {
		t.Errorf("got %+v, want its end", end)
	}
	creator := of(events, f["creator"])
	if creator[0].Kind != sample.ThreadBegan || creator[0].PID != f["main"] {
		t.Errorf("got %+v, want the beginning of a thread of %d", creator[0], f["main"])
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := len(s.jobs[1].known); known != 0 {
		t.Errorf("got %d processes that are kept as followed, want none: all have ended", known)
	}
}

// execProgram has another thread than the first one replace the program.
func execProgram(f facts) {
	known := make(chan struct{})
	tid, _ := thread(func() {
		<-known
		_ = json.NewEncoder(os.Stdout).Encode(f)
		must(syscall.Exec("/bin/sh", []string{"sh", "-c", "exit 0"}, nil))
	})
	f["other"] = tid
	close(known)
	select {}
}

func TestExecByAnotherThread(t *testing.T) {
	s := opened(t, defaults)
	f, events := trace(t, s, "exec")
	checkChain(t, events)
	other := of(events, f["other"])
	if last := other[len(other)-1]; last.State != sample.StateDead {
		t.Errorf("got %+v as the last of the thread that called exec, want its end", last)
	}
	leader := of(events, f["main"])
	again := slices.IndexFunc(leader[1:], func(e sample.ThreadEvent) bool { return e.Kind == sample.ThreadBegan })
	if again < 0 {
		t.Fatal("got one beginning of the first thread, want two")
	}
	if began := leader[again+1]; began.Creator != f["other"] {
		t.Errorf("got creator %d, want %d, which took the number", began.Creator, f["other"])
	}
}

func napProgram(facts) {
	wait := unix.NsecToTimespec((100 * time.Millisecond).Nanoseconds())
	must(unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &wait, nil))
}

func TestSleepEndsByInterrupt(t *testing.T) {
	s := opened(t, defaults)
	f, events := trace(t, s, "sleep")
	checkChain(t, events)
	found := pauses(events, f["main"], func(out sample.ThreadEvent) bool {
		return out.Syscall == unix.SYS_CLOCK_NANOSLEEP && out.State != sample.StateReady // others took its CPU before
	})
	if len(found) != 1 {
		t.Fatalf("got %d pauses in clock_nanosleep, want 1", len(found))
	}
	out, in := found[0][0], found[0][1]
	if in.WakerKind != sample.Interrupt || in.Waker != 0 || out.File != sample.NoFile {
		t.Errorf("got waker %d of kind %d and file %d; want an interrupt and none", in.Waker, in.WakerKind, out.File)
	}
	if slept := in.Woken - out.At; slept < 50*time.Millisecond { // it ends 100 ms after the call began
		t.Errorf("got %v, want 100 ms", slept)
	}
}

// TestStops: a signal or the freezer stops a thread, which has nothing to do with the call that it is in.
func TestStops(t *testing.T) {
	for what, stop := range map[string]func(t *testing.T, pid int) (goOn func()){
		"a signal": func(_ *testing.T, pid int) func() {
			must(unix.Kill(pid, unix.SIGSTOP))
			return func() { must(unix.Kill(pid, unix.SIGCONT)) }
		},
		"the freezer": func(t *testing.T, pid int) func() { return fixture.Freeze(t, pid) },
	} {
		t.Run(what, func(t *testing.T) {
			s := opened(t, defaults)
			p := fixture.Start(t, "sleep")
			if err := s.Follow("job", []int{p.PID()}); err != nil {
				t.Fatal(err)
			}
			goOn := stop(t, p.PID())
			time.Sleep(50 * time.Millisecond)
			goOn()
			f := p.Finish()
			longest := time.Duration(0)
			for _, pause := range pauses(readAll(t, s), f["main"], func(out sample.ThreadEvent) bool {
				return out.State == sample.StateStopped
			}) {
				longest = max(longest, pause[1].At-pause[0].At)
			}
			if longest < 25*time.Millisecond {
				t.Errorf("got stopped for %v, want about 50 ms", longest)
			}
		})
	}
}

func futexProgram(f facts) {
	var word uint32
	at := uintptr(unsafe.Pointer(&word))
	f["address"] = int(at)
	tid, wait := thread(func() {
		_, _, _ = unix.Syscall6(unix.SYS_FUTEX, at, 0 /* FUTEX_WAIT */, 0, 0, 0, 0)
	})
	f["waiter"] = tid
	untilIn(tid, at)
	time.Sleep(10 * time.Millisecond)
	waker, wait2 := thread(func() {
		_, _, _ = unix.Syscall6(unix.SYS_FUTEX, at, 1 /* FUTEX_WAKE */, 1, 0, 0, 0)
	})
	f["waker"] = waker
	wait()
	wait2()
}

func TestFutex(t *testing.T) {
	s := opened(t, defaults)
	f, events := trace(t, s, "futex")
	checkChain(t, events)
	found := pauses(events, f["waiter"], func(out sample.ThreadEvent) bool {
		return out.Syscall == unix.SYS_FUTEX && out.Detail == uint64(f["address"])
	})
	if len(found) != 1 {
		t.Fatalf("got %d pauses at futex %#x, want 1", len(found), f["address"])
	}
	if in := found[0][1]; in.Waker != f["waker"] || in.WakerKind != sample.UserThread {
		t.Errorf("got waker %d, kind %d; want thread %d", in.Waker, in.WakerKind, f["waker"])
	}
}

// tcpProgram has a thread that waits for data from another one on a connection.
func tcpProgram(f facts) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	must(err)
	client, err := net.Dial("tcp4", listener.Addr().String())
	must(err)
	server, err := listener.Accept()
	must(err)
	f["port"] = server.LocalAddr().(*net.TCPAddr).Port
	file, err := client.(*net.TCPConn).File() // a descriptor that blocks
	must(err)
	must(unix.SetNonblock(int(file.Fd()), false))
	sink, err := server.(*net.TCPConn).File()
	must(err)
	must(unix.SetNonblock(int(sink.Fd()), false))
	tid, wait := thread(func() {
		_, _, err := unix.Recvfrom(int(file.Fd()), make([]byte, 1), 0)
		must(err)
	})
	f["receiver"] = tid
	untilIn(tid, file.Fd())
	time.Sleep(10 * time.Millisecond)
	sender, wait2 := thread(func() { must(unix.Sendto(int(sink.Fd()), []byte{0}, 0, nil)) })
	f["sender"] = sender
	wait()
	wait2()
}

func TestSocket(t *testing.T) {
	s := opened(t, defaults)
	f, events := trace(t, s, "tcp")
	checkChain(t, events)
	found := pauses(events, f["receiver"], func(out sample.ThreadEvent) bool { return out.File == sample.Socket })
	if len(found) != 1 {
		t.Fatalf("got %d pauses at a socket, want 1", len(found))
	}
	out, in := found[0][0], found[0][1]
	if want := fmt.Sprintf("127.0.0.1:%d over TCP", f["port"]); out.Peer != want || out.Syscall != unix.SYS_RECVFROM {
		t.Errorf("got peer %q in call %d; want %q in recvfrom", out.Peer, out.Syscall, want)
	}
	if in.WakerKind != sample.SoftIRQ || in.Waker != f["sender"] {
		t.Errorf("got waker %d, kind %d; want the sender %d in a soft interrupt", in.Waker, in.WakerKind, f["sender"])
	}
}

const diskBytes = 1 << 20

// diskProgram reads a cold file without the page cache's read-ahead.
func diskProgram(f facts) {
	file, err := os.OpenFile(os.Args[1], os.O_RDWR, 0)
	must(err)
	must(unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_RANDOM))
	var stat unix.Stat_t
	must(unix.Fstat(int(file.Fd()), &stat))
	f["inode"] = int(stat.Ino)
	buf := make([]byte, 4096)
	for i := range 10 {
		_, err := unix.Pread(int(file.Fd()), buf, int64(i)*diskBytes/10&^4095)
		must(err)
	}
	must(unix.Nanosleep(&unix.Timespec{Nsec: 1e6}, nil))
	_, err = unix.Pwrite(int(file.Fd()), make([]byte, diskBytes/2), 0) // takes pages, and fetches nothing
	must(err)
	_, err = unix.Pread(int(file.Fd()), buf, 0)
	must(err)
}

// slowFile returns a cold file of diskBytes on a disk that takes 10 ms for a request.
func slowFile(t *testing.T) (path string) {
	t.Helper()
	for _, need := range []string{"/dev/fuse", "/dev/loop-control"} {
		if _, err := os.Stat(need); err != nil {
			t.Skip("needs FUSE and loop devices: ", err)
		}
	}
	o := slowdisk.Options{Size: 128 << 20, Delay: 10 * time.Millisecond}
	d, err := slowdisk.Open(t.Context(), slowdisk.Spinning, o)
	if err != nil {
		t.Skip("needs a slow device: ", err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	path = filepath.Join(d.Dir, "data")
	if err := os.WriteFile(path, make([]byte, diskBytes), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.Slow(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestReadOfSlowDisk(t *testing.T) {
	s := opened(t, defaults)
	f, events := trace(t, s, "disk", slowFile(t))
	checkChain(t, events)
	found := pauses(events, f["main"], func(out sample.ThreadEvent) bool {
		return out.Syscall == unix.SYS_PREAD64 && out.File == sample.RegularFile && out.Detail == uint64(f["inode"])
	})
	found = slices.DeleteFunc(found, func(p [2]sample.ThreadEvent) bool {
		return p[0].State != sample.StateBlocked || !p[0].IOWait // it waits for memory, on a machine that is short of it
	})
	var blocked time.Duration
	for _, p := range found {
		end := p[1].Woken
		if end == 0 { // the wake-up was not seen, as docs/internals/schedule.md says
			end = p[1].At
		}
		blocked += end - p[0].At
	}
	if len(found) < 10 || blocked < 90*time.Millisecond {
		t.Errorf("got %d pauses of %v in all that are blocked with I/O wait, want 10 of 10 ms", len(found), blocked)
	}
	var fetched, chars uint64
	var fetching [2]time.Duration // before it sleeps, and after
	phase := 0
	for _, e := range of(events, f["main"]) {
		fetched += e.Fetched
		chars += e.Chars
		fetching[phase] += e.Fetching
		if e.Kind == sample.ThreadOut && e.Syscall == unix.SYS_NANOSLEEP {
			phase = 1
		}
	}
	if phase == 0 || fetching[0] < 10*time.Microsecond || fetching[0] > 50*time.Millisecond || fetching[1] != 0 {
		t.Errorf("got %v of fetching in 10 reads and %v in a write, want 1 us a read at least and none", fetching[0],
			fetching[1])
	}
	if fetched < 10*4096 || chars < 10*4096 {
		t.Errorf("got %d bytes fetched and %d read, want at least %d", fetched, chars, 10*4096)
	}
}

// faultPages is how many pages faultProgram touches.
const faultPages = 20

// faultProgram touches pages of a cold file, maps what it has read again after a sleep, and writes to such a page.
func faultProgram(facts) {
	file, err := os.OpenFile(os.Args[1], os.O_RDWR, 0)
	must(err)
	touch := func(write bool) {
		data, err := unix.Mmap(int(file.Fd()), 0, diskBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
		must(err)
		must(unix.Madvise(data, unix.MADV_RANDOM))
		var sum byte
		for i := range faultPages {
			sum += data[i*diskBytes/faultPages&^4095]
		}
		if write {
			data[0] = sum + 1
		}
	}
	touch(false)
	must(unix.Nanosleep(&unix.Timespec{Nsec: 1e6}, nil))
	touch(true)
}

// TestKernelWithoutFaults: for a kernel that lacks one of the tracepoints of faults, the programs of both are dropped,
// and the others are loaded.
func TestKernelWithoutFaults(t *testing.T) {
	needs(t)
	out := unwanted(Wanted{Threads: true})
	for _, one := range Supported("") {
		out[one.What] = one.Why // as on this machine
	}
	l, err := newLoader(out, defaults)
	if err != nil {
		t.Fatal(err)
	}
	kernel, err := l.types.Kernel()
	if err != nil {
		t.Fatal(err)
	}
	l.spec.Programs["on_start"] = &ebpf.ProgramSpec{AttachTo: "block_io_start"}
	l.spec.Programs["on_fault"] = &ebpf.ProgramSpec{AttachTo: "mm_filemap_fault"}
	l.spec.Programs["on_mapped"] = &ebpf.ProgramSpec{AttachTo: "not_a_tracepoint"}
	dropUnknown(l.spec, kernel)
	all, err := l.load(true)
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	if all.Programs["on_fault"] != nil || all.Programs["on_mapped"] != nil || all.Programs["on_switch"] == nil {
		t.Errorf("got the programs %v, want those of faults left out", all.Programs)
	}
}

// TestPageFaults: between two waits of a thread that only touches pages, nearly all is work to fetch them. Nothing is
// when they are in memory.
func TestPageFaults(t *testing.T) {
	s := opened(t, defaults)
	if s.tracing.(*Tracer).programs.Programs["on_fault"] == nil {
		t.Skip("needs Linux 6.12")
	}
	f, events := trace(t, s, "fault", slowFile(t))
	checkChain(t, events)
	var shares []float64 // of fetching, in the running time between two waits
	var running, fetching, later time.Duration
	var since time.Duration // of the last wait in a page fault; 0 without one
	slept := false
	for _, e := range of(events, f["main"]) {
		switch e.Kind {
		case sample.ThreadIn:
			if since == 0 {
				break
			}
			since = e.At
		case sample.ThreadOut:
			inFault := e.IOWait && e.Syscall == -1
			switch {
			case slept:
				later += e.Fetching
			case since != 0 && inFault:
				running += e.At - since
				fetching += e.Fetching
				shares = append(shares, e.Fetching.Seconds()/(e.At-since).Seconds())
			}
			if since = 0; inFault {
				since = e.At
			}
			slept = slept || e.Syscall == unix.SYS_NANOSLEEP
		}
	}
	t.Logf("%v of fetching in %v between %d waits", fetching, running, len(shares))
	slices.Sort(shares)
	if n := len(shares); n < faultPages/5 || shares[n/2] < 2./3 || shares[n-1] > 1.001 {
		t.Errorf("got %.2f of fetching in the times between waits in page faults, want nearly all of most, of up to %d",
			shares, faultPages-1)
	}
	if !slept || later != 0 {
		t.Errorf("got %v of fetching for pages in memory, want none", later)
	}
}

// spinProgram computes, and reports its CPU time.
func spinProgram(f facts) {
	var before, after unix.Timespec
	must(unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &before))
	for until := time.Now().Add(60 * time.Millisecond); time.Now().Before(until); {
	}
	must(unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &after))
	f["cpu"] = int(after.Nano() - before.Nano())
}

// The time on a CPU, without what the hypervisor stole, is that of the thread's own clock. What the thread does outside
// of the loop is a few milliseconds.
func TestRunningTime(t *testing.T) {
	s := opened(t, defaults)
	f, events := trace(t, s, "spin")
	checkChain(t, events)
	var running time.Duration
	own := of(events, f["main"])
	for i, e := range own[1:] {
		if e.Kind == sample.ThreadOut && own[i].Kind == sample.ThreadIn {
			running += e.At - own[i].At - e.Stolen
		}
	}
	cpu := time.Duration(f["cpu"])
	if running < cpu-2*time.Millisecond || running > cpu+cpu/5+10*time.Millisecond {
		t.Errorf("got %v on a CPU, want %v", running, cpu)
	}
}

// epollProgram waits for files without a type.
func epollProgram(facts) {
	epoll, err := unix.EpollCreate1(0)
	must(err)
	_, err = unix.EpollWait(epoll, make([]unix.EpollEvent, 1), 100)
	must(err)
}

func TestFileWithoutType(t *testing.T) {
	s := opened(t, defaults)
	f, events := trace(t, s, "epoll")
	found := pauses(events, f["main"], func(out sample.ThreadEvent) bool { return out.File == sample.OtherFile })
	if len(found) != 1 || found[0][0].Detail == 0 {
		t.Errorf("got %d pauses at a file without a type, want 1 with an inode", len(found))
	}
}

// deviceProgram waits for a terminal.
func deviceProgram(f facts) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	must(err)
	must(unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPTN)
	must(err)
	other, err := unix.Open(fmt.Sprintf("/dev/pts/%d", n), unix.O_RDWR|unix.O_NOCTTY, 0)
	must(err)
	var stat unix.Stat_t
	must(unix.Fstat(other, &stat))
	f["device"] = int(stat.Rdev)
	tid, wait := thread(func() {
		_, err := unix.Read(other, make([]byte, 1))
		must(err)
	})
	f["reader"] = tid
	untilIn(tid, uintptr(other))
	time.Sleep(10 * time.Millisecond)
	_, err = terminal.WriteString("\n")
	must(err)
	wait()
}

func TestDevice(t *testing.T) {
	s := opened(t, defaults)
	if _, err := os.Stat("/dev/pts/ptmx"); err != nil {
		t.Skip("needs pseudo terminals: ", err)
	}
	f, events := trace(t, s, "device")
	found := pauses(events, f["reader"], func(out sample.ThreadEvent) bool {
		return out.File == sample.CharDevice && out.Detail == uint64(f["device"])
	})
	if len(found) != 1 {
		t.Errorf("got %d pauses at device %#x, want 1", len(found), f["device"])
	}
}
