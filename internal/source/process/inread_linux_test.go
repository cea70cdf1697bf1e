package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestInReads: what threads sleep in, as samples say, divides the time that they slept.
func TestInReads(t *testing.T) {
	tr := tree{t, t.TempDir()}
	const trainer, worker = 20, 30
	for _, pid := range []int{trainer, worker} {
		tr.thread(pid, pid, 0, 0, 0)
		if err := os.MkdirAll(filepath.Join(tr.root, "proc", strconv.Itoa(pid), "fd"), 0o755); err != nil {
			t.Fatal(err)
		}
		for fd, to := range map[int]string{3: "/mnt/data/shard-0001", 4: "pipe:[1234]"} {
			if err := os.Symlink(to, filepath.Join(tr.root, "proc", strconv.Itoa(pid), "fd", strconv.Itoa(fd))); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := New(tr.root)
	defer s.Close()
	threads := threads{remote: true, leaders: []*thread{s.follow(trainer, 0)}, readers: []*thread{s.follow(worker, 0)}}
	defer threads.close(s)
	now := time.Second
	threads.read(s, now)
	for step := range 100 {
		tr.write(trainer, "syscall",
			fmt.Sprintf("%d 0x4 0x0 0x0 0x0 0x0 0x0 0x7ffc 0x7f5a\n", unix.SYS_READ)) // for the next batch
		in := "running\n"
		switch step % 4 {
		case 1, 2:
			in = fmt.Sprintf("%d 0x3 0x7f5a2eaad000 0x20000 0x0 0xffffffff 0x0 0x7ffc 0x7f5a\n", unix.SYS_PREAD64)
		case 3:
			in = "-1 0x7ffc 0x7f5a\n"
		}
		tr.write(worker, "syscall", in)
		tr.thread(worker, worker, 0, 25*(step+1), 0)
		now += 100 * time.Millisecond
		threads.read(s, now)
	}
	// It slept for 75 of 100 ms, and in two of three samples of that in a read.
	if got := threads.inReads; got < 4700*time.Millisecond || got > 5300*time.Millisecond {
		t.Errorf("%v of 7.5 s were slept in reads, want 5 s", got)
	}
	if slept := threads.reading - threads.working; threads.inReads > slept {
		t.Errorf("%v of %v", threads.inReads, slept)
	}
	for _, remote := range []bool{false, true} { // it reads from a disk, or from memory, and then again from there
		threads.setRemote(remote)
		for _, other := range threads.leaders {
			tr.write(other.id, "syscall", "running\n")
		}
		tr.write(worker, "syscall", "running\n")
		before := threads.inReads
		threads.read(s, now+time.Second)
		if got := threads.inReads - before; got != 0 {
			t.Errorf("remote %v: got %v more in reads, want 0 from earlier samples", remote, got)
		}
	}
}

// TestInReadsOfThisKernel looks at real processes. A named pipe lies in a file system and never answers, as a server
// that is gone.
func TestInReadsOfThisKernel(t *testing.T) {
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	hold, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hold.Close() }()
	s := New("/")
	defer s.Close()
	for _, c := range []struct {
		command []string
		want    float64
	}{
		{[]string{"cat", path}, 1},
		{[]string{"cat"}, 0}, // a pipe
		{[]string{"sleep", "60"}, 0},
	} {
		cmd := exec.Command(c.command[0], c.command[1:]...)
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		one := s.follow(cmd.Process.Pid, 0)
		for deadline := time.Now().Add(10 * time.Second); one.in.samples < 10 || one.in.share != c.want; {
			time.Sleep(5 * time.Millisecond)
			s.sampleReads([]*thread{one})
			if one.in.samples == 0 && time.Now().After(deadline) {
				t.Skip("the kernel does not let this user see what its own child sleeps in (/proc/PID/syscall)")
			}
			if time.Now().After(deadline) {
				t.Errorf("%q: %+v, want %v", c.command, one.in, c.want)
				break
			}
		}
		one.close(s)
		_ = in.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

func FuzzParseSyscall(f *testing.F) {
	for _, seed := range []string{
		"running\n", "-1 0x7ffc 0x7f5a\n", "0 0x3 0x0 0x0 0x0 0x0 0x0 0x7ffc 0x7f5a\n", "", "0", "17 3",
		"0 0xffffffffffffffff", "99999999999999999999 0x3",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if fd, sleeps, reads := parseSyscall(text); reads && (!sleeps || fd > 1<<31) {
			t.Errorf("%q: got a read of %d, asleep %v; want a valid file descriptor and a sleep", text, fd, sleeps)
		}
	})
}

func BenchmarkSampleRead(b *testing.B) {
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	s := New("/")
	defer s.Close()
	one := s.follow(cmd.Process.Pid, 0)
	defer one.close(s)
	for b.Loop() {
		s.sampleReads([]*thread{one})
	}
}
