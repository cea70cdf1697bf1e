package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/fixture"
)

// thread writes what /proc says of one thread. ran and ready are in milliseconds.
func (t tree) thread(pid, tid int, read uint64, ran, ready int) {
	t.Helper()
	t.write(pid, fmt.Sprintf("task/%d/io", tid), fmt.Sprintf("rchar: %d\nread_bytes: %d\nwrite_bytes: 0\n", read, read))
	fixture.Write(t, t.root, fmt.Sprintf("proc/%d/schedstat", tid), fmt.Appendf(nil, "%d %d 7\n", ran*1e6, ready*1e6))
}

// program says which executable a process runs.
func (t tree) program(pid int, name string) {
	t.Helper()
	link := filepath.Join(t.root, "proc", strconv.Itoa(pid), "exe")
	_ = os.Remove(link)
	if err := os.Symlink(name, link); err != nil {
		t.Fatal(err)
	}
}

// TestThreads follows a shell that runs a trainer, whose two workers read; a third one does not.
func TestThreads(t *testing.T) {
	tr := tree{t, t.TempDir()}
	const shell, trainer, first, second, idle = 10, 20, 31, 32, 33
	put := func(step int) {
		moved := counts{readBytes: uint64(step) << 20, readChars: uint64(step) << 20}
		tr.put(shell, 1, 100, 'S', counts{}, counts{})
		tr.put(trainer, shell, 200, 'R', counts{}, counts{})
		tr.put(first, trainer, 300, 'D', moved, counts{})
		tr.put(second, trainer, 301, 'D', moved, counts{})
		tr.put(idle, trainer, 302, 'S', counts{}, counts{})
		tr.thread(shell, shell, 0, 1, 0)
		tr.thread(trainer, trainer, 0, 90*step, 0)
		tr.thread(first, first, uint64(step)<<20, 10*step, 5*step)
		tr.thread(second, second, uint64(step)<<20, 20*step, 0)
		tr.thread(idle, idle, 0, 50*step, 0)
	}
	put(0)
	tr.children(shell, trainer)
	tr.children(trainer, first, second, idle)
	for _, pid := range []int{first, second, idle} {
		tr.children(pid)
		tr.program(pid, "/usr/bin/python3")
	}
	tr.program(trainer, "/usr/bin/python3")
	tr.program(shell, "/bin/sh")

	s := New(tr.root)
	defer s.Close()
	if err := s.Add("job", shell, Options{}); err != nil {
		t.Fatal(err)
	}
	read(t, s) // the members are known, nobody has read
	put(1)
	read(t, s) // they have: this reading finds out
	before := read(t, s).Jobs[0]
	begin := time.Now()
	put(2)
	time.Sleep(100 * time.Millisecond)
	after := read(t, s).Jobs[0]
	took := time.Since(begin)
	if got := after.LeaderTime - before.LeaderTime; got != 90*time.Millisecond {
		t.Errorf("the trainer ran for %v, want 90ms", got)
	}
	if got := after.ReaderWork - before.ReaderWork; got != 35*time.Millisecond {
		t.Errorf("readers worked for %v, want 35ms: 15 of the first, 20 of the second", got)
	}
	if got := after.ReaderTime - before.ReaderTime; got < 200*time.Millisecond || got > 2*took+50*time.Millisecond {
		t.Errorf("there were readers for %v in %v, want twice as long", got, took)
	}
	for range readerFor + 1 { // they read no more
		s.lookNow()
		read(t, s)
	}
	if n := len(s.jobs[0].threads.readers); n != 0 {
		t.Errorf("%d threads are taken for readers, want none", n)
	}
}

// TestThreadsOfOneProcess tells the threads apart that read from those that do not, and from the first one.
func TestThreadsOfOneProcess(t *testing.T) {
	tr := tree{t, t.TempDir()}
	const pid = 10
	put := func(step int) {
		moved := counts{readBytes: uint64(step) << 20, readChars: uint64(step) << 20}
		tr.put(pid, 1, 100, 'R', moved, counts{})
		text, err := os.ReadFile(filepath.Join(tr.root, "proc/10/stat"))
		if err != nil {
			t.Fatal(err)
		}
		many := fmt.Sprintf("%s 20 0 4 0 %s", text[:len(text)-len(" 20 0 1 0 100 0 0 18446744073709551615\n")], "100 0 0 0\n")
		tr.write(pid, "stat", many)
		for tid := pid; tid < pid+4; tid++ {
			tr.thread(pid, tid, uint64(step*(tid%2))<<20, 10*step, 0) // 11 and 13 read
		}
	}
	put(1)
	tr.children(pid)
	s := New(tr.root)
	defer s.Close()
	if err := s.Add("job", pid, Options{}); err != nil {
		t.Fatal(err)
	}
	read(t, s)
	if n := len(s.jobs[0].threads.readers); n != 0 {
		t.Errorf("%d readers of what was read before the job was followed", n)
	}
	put(2)
	s.lookNow()
	read(t, s)
	ids := map[int]bool{}
	for _, r := range s.jobs[0].threads.readers {
		ids[r.id] = true
	}
	if len(ids) != 2 || !ids[11] || !ids[13] {
		t.Errorf("readers %v, want 11 and 13", ids)
	}
}

func FuzzParseSchedstat(f *testing.F) {
	f.Add([]byte("75502 62653 2\n"))
	f.Add([]byte("18446744073709551615 0 0\n"))
	f.Add([]byte(" \n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		ran, ready, ok := parseSchedstat(text)
		if !ok {
			return
		}
		if again, same, ok := parseSchedstat(fmt.Appendf(nil, "%d %d 0", ran, ready)); !ok || again != ran || same != ready {
			t.Errorf("%q: %d and %d, then %d and %d", text, ran, ready, again, same)
		}
	})
}
