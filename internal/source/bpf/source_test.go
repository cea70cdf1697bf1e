//go:build linux && (amd64 || arm64)

package bpf

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

// pipeProgram has a thread that waits in read(2) for 20 ms until another thread writes.
func pipeProgram(f facts) {
	var p [2]int
	must(unix.Pipe2(p[:], 0))
	var stat unix.Stat_t
	must(unix.Fstat(p[0], &stat))
	f["inode"] = int(stat.Ino)
	tid, wait := thread(func() {
		_, err := unix.Read(p[0], make([]byte, 1))
		must(err)
	})
	f["reader"] = tid
	untilIn(tid, uintptr(p[0]))
	time.Sleep(20 * time.Millisecond)
	writer, wait2 := thread(func() {
		_, err := unix.Write(p[1], []byte{0})
		must(err)
	})
	f["writer"] = writer
	wait()
	wait2()
}

func TestReadOfPipe(t *testing.T) {
	s := opened(t, defaults)
	f, events := trace(t, s, "pipe")
	checkChain(t, events)
	found := pauses(events, f["reader"], func(out sample.ThreadEvent) bool {
		return out.Syscall == unix.SYS_READ && out.File == sample.Pipe && out.Detail == uint64(f["inode"])
	})
	if len(found) != 1 {
		t.Fatalf("got %d pauses in read of pipe %d, want 1", len(found), f["inode"])
	}
	out, in := found[0][0], found[0][1]
	if out.State != sample.StateAsleep || out.IOWait {
		t.Errorf("got state %v, I/O wait %v; want asleep without I/O wait", out.State, out.IOWait)
	}
	if in.Waker != f["writer"] || in.WakerPID != f["main"] || in.WakerKind != sample.UserThread {
		t.Errorf("got waker %d of %d, kind %d; want thread %d of %d",
			in.Waker, in.WakerPID, in.WakerKind, f["writer"], f["main"])
	}
	if in.Woken-out.At < 20*time.Millisecond {
		t.Errorf("got %v asleep, want 20 ms or more", in.Woken-out.At)
	}
}

func TestUnfollowedProcessGivesNothing(t *testing.T) {
	s := opened(t, defaults)
	p := fixture.Start(t, "pipe")
	p.Finish()
	if events := readAll(t, s); len(events) != 0 {
		t.Errorf("got %d events, want none", len(events))
	}
	q := fixture.Start(t, "pipe")
	if err := s.Follow("job", []int{q.PID()}); err != nil {
		t.Fatal(err)
	}
	s.Unfollow("job")
	readAll(t, s) // what came before
	q.Finish()
	if events := readAll(t, s); len(events) != 0 {
		t.Errorf("got %d events after Unfollow, want none", len(events))
	}
}

func TestFilesOfAnotherMachineHaveNoTypes(t *testing.T) {
	if _, err := New(t.TempDir()); err == nil || !strings.Contains(err.Error(), "CONFIG_DEBUG_INFO_BTF") {
		t.Errorf("got %v, want an error that names what the kernel lacks", err)
	}
}

func TestRefusedBufferIsAnError(t *testing.T) {
	needs(t)
	o := defaults
	o.ringBytes = 4097 // no power of two
	s := openWith(o)
	defer func() { _ = s.Close() }()
	if s.Refused() == nil {
		t.Error("got no error for a buffer of 4097 bytes, want the kernel's")
	}
}
