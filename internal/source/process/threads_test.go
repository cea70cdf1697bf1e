package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stallspan/stallspan/test/fixture"
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
	read(t, s) // finds the members, without reads so far
	time.Sleep(100 * time.Millisecond)
	put(1)
	read(t, s) // they have read: this reading shows it
	time.Sleep(50 * time.Millisecond)
	begin := time.Now() // the reader's time is counted from within the next reading on
	before := read(t, s).Jobs[0]
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
	scan := func() {
		s.jobs[0].threads.scanned -= minScanInterval
		s.lookNow()
		read(t, s)
	}
	scan()
	s.jobs[0].threads.readers[0].moved -= readsFor // one read long before, the other recently
	scan()
	if n := len(s.jobs[0].threads.readers); n != 1 {
		t.Errorf("got %d readers, want the one with recent reads", n)
	}
	s.jobs[0].threads.readers[0].moved -= readsFor
	scan()
	if n := len(s.jobs[0].threads.readers); n != 0 {
		t.Errorf("got %d readers, want none", n)
	}
}

// Threads that read are distinguished from others and from the first thread.
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
	s.jobs[0].threads.scanned -= minScanInterval
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
		ran, ready, ok := ParseSchedstat(text)
		if !ok {
			return
		}
		if again, same, ok := ParseSchedstat(fmt.Appendf(nil, "%d %d 0", ran, ready)); !ok || again != ran || same != ready {
			t.Errorf("%q: %d and %d, then %d and %d", text, ran, ready, again, same)
		}
	})
}

// TestSerialReaderIsNotLookedFor: where the leading thread reads, its process is looked into once a second, and not
// with every reading.
func TestSerialReaderIsNotLookedFor(t *testing.T) {
	tr := tree{t, t.TempDir()}
	const pid = 10
	tr.children(pid)
	put := func(step int) {
		tr.put(pid, 1, 100, 'D', counts{readBytes: uint64(step) << 20}, counts{})
		tr.thread(pid, pid, uint64(step)<<20, step, 0)
	}
	put(1)
	s := New(tr.root)
	defer s.Close()
	if err := s.Add("job", pid, Options{}); err != nil {
		t.Fatal(err)
	}
	j := s.jobs[0]
	j.begun -= startPeriod
	looks := map[time.Duration]bool{}
	for step := range 20 {
		put(2 + step)
		j.threads.scanned -= minScanInterval
		before := j.threads.scanned
		read(t, s)
		if j.threads.scanned != before {
			looks[j.threads.scanned] = true
		}
	}
	if len(looks) > 1 { // the first finds out that it has begun
		t.Errorf("%d looks in 20 readings", len(looks))
	}
}

// TestLauncher: Python's launchers run what they launch with their own executable.
func TestLauncher(t *testing.T) {
	tr := tree{t, t.TempDir()}
	const launcher, trainer, worker = 10, 20, 30
	put := func(step int) {
		tr.put(launcher, 1, 100, 'S', counts{}, counts{})
		tr.put(trainer, launcher, 200, 'R', counts{cpuTicks: uint64(90 * step)}, counts{})
		tr.put(worker, trainer, 300, 'R', counts{cpuTicks: uint64(20 * step)}, counts{})
		tr.thread(trainer, trainer, 0, 0, 0)
		tr.thread(launcher, launcher, 0, 0, 0)
	}
	put(1)
	tr.children(launcher, trainer)
	tr.children(trainer, worker)
	tr.children(worker)
	for pid, arguments := range map[int]string{
		launcher: "python3\x00torchrun\x00train.py", trainer: "python3\x00train.py", worker: "python3\x00train.py",
	} {
		tr.program(pid, "/usr/bin/python3")
		tr.write(pid, "cmdline", arguments)
	}
	leads(t, tr, launcher, trainer, put)
}

// leads scans a job three times, after put has written the next step, and checks the leader.
func leads(t *testing.T, tr tree, root, leader int, put func(step int)) {
	t.Helper()
	s := New(tr.root)
	defer s.Close()
	if err := s.Add("job", root, Options{}); err != nil {
		t.Fatal(err)
	}
	for step := range 3 {
		put(2 + step)
		s.jobs[0].threads.scanned -= minScanInterval
		s.lookNow()
		read(t, s)
	}
	if !s.jobs[0].threads.leads(leader) {
		t.Errorf("%+v leads, want %d", s.jobs[0].threads.leaders, leader)
	}
}

// A trainer with one worker may be idle without being a launcher.
func TestIdleTrainer(t *testing.T) {
	for _, arguments := range []string{
		"python3\x00train.py", "python3\x00-c\x00from multiprocessing.spawn import spawn_main\x00--multiprocessing-fork",
	} {
		tr := tree{t, t.TempDir()}
		const trainer, worker = 20, 30
		put := func(step int) {
			tr.put(trainer, 1, 100, 'S', counts{}, counts{})
			tr.put(worker, trainer, 200, 'R', counts{cpuTicks: uint64(90 * step)}, counts{})
			tr.thread(trainer, trainer, 0, 0, 0)
			tr.thread(worker, worker, 0, 0, 0)
		}
		put(1)
		tr.children(trainer, worker)
		tr.children(worker)
		for pid, arguments := range map[int]string{trainer: "python3\x00train.py", worker: arguments} {
			tr.program(pid, "/usr/bin/python3")
			tr.write(pid, "cmdline", arguments)
		}
		leads(t, tr, trainer, trainer, put)
	}
}

// Growth in steps is complete with readings at short intervals.
func TestCounterSteps(t *testing.T) {
	for _, every := range []time.Duration{
		time.Millisecond, 3 * time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond,
	} {
		var c counter
		c.grown(0, 0)
		var sum time.Duration
		for at := every; at <= 2*time.Second; at += every {
			sum += c.grown(uint64(at/(4*time.Millisecond))*4e6, every)
		}
		if sum < 1980*time.Millisecond || sum > 2*time.Second {
			t.Errorf("readings every %v: got %v, want about 2s", every, sum)
		}
	}
	var c counter
	c.grown(1e9, 0)
	if got := c.grown(5e9, time.Second); got != time.Second {
		t.Errorf("%v in a second", got)
	}
	if got := c.grown(5e9, time.Second); got > maxPending {
		t.Errorf("%v in a second without anything", got)
	}
	if got := c.grown(1, time.Second); got != 0 {
		t.Errorf("%v of one that went back", got)
	}
}

// TestThreadsAreBounded: no more threads are opened in a look than its budget allows, and all come in turn.
func TestThreadsAreBounded(t *testing.T) {
	tr := tree{t, t.TempDir()}
	const each = 40
	list := ""
	put := func(step int) {
		for pid := 100; pid < 500; pid += 100 {
			tr.put(pid, 1, 100, 'R', counts{readBytes: uint64(step) << 20}, counts{})
			text, err := os.ReadFile(filepath.Join(tr.root, "proc", strconv.Itoa(pid), "stat"))
			if err != nil {
				t.Fatal(err)
			}
			tr.write(pid, "stat",
				string(text[:len(text)-len(" 20 0 1 0 100 0 0 18446744073709551615\n")])+" 20 0 4 0 100 0 0 0\n")
			for tid := pid; tid < pid+each; tid++ {
				tr.thread(pid, tid, uint64(step)<<20, 0, 0)
			}
		}
	}
	put(1)
	for pid := 200; pid < 500; pid += 100 {
		list += strconv.Itoa(pid) + " "
		tr.children(pid)
	}
	tr.write(100, "task/100/children", list)
	s := New(tr.root)
	defer s.Close()
	if err := s.Add("job", 100, Options{}); err != nil {
		t.Fatal(err)
	}
	read(t, s)
	j := s.jobs[0]
	for _, m := range j.members {
		m.threads = nil
	}
	put(2)
	read(t, s)
	j.threads.next = 0
	for _, m := range j.members {
		m.fetched, m.threads = fetched{}, nil
	}
	j.threads.scanned -= minScanInterval
	j.scanThreads(s, 50, j.threads.scanned+minScanInterval)
	seen := 0
	for _, m := range j.members {
		seen += len(m.threads)
	}
	if seen > 50 || seen < each {
		t.Errorf("%d threads looked at with a budget of 50", seen)
	}
	if j.threads.next != 2 {
		t.Errorf("the next look begins with member %d, want 2: one was seen whole, one in part", j.threads.next)
	}
}

// TestHoldersLead: where it is known who holds memory of a GPU, those lead.
func TestHoldersLead(t *testing.T) {
	tr := tree{t, t.TempDir()}
	for i, pid := range []int{10, 20, 30} {
		tr.put(pid, min(pid-1, 10), uint64(100+i), 'R', counts{}, counts{})
		tr.thread(pid, pid, 0, 0, 0)
		tr.program(pid, "/usr/bin/python3")
		tr.children(pid)
	}
	tr.children(10, 20, 30)
	s := New(tr.root)
	defer s.Close()
	if err := s.Add("job", 10, Options{}); err != nil {
		t.Fatal(err)
	}
	s.Lead("job", []int{20, 30, 99})
	scan := func() *threads {
		s.jobs[0].threads.scanned -= minScanInterval
		s.lookNow()
		read(t, s)
		return &s.jobs[0].threads
	}
	if th := scan(); len(th.leaders) != 2 || !th.leads(20) || !th.leads(30) {
		t.Errorf("%d lead, want 20 and 30", len(th.leaders))
	}
	tr.end(20)
	if th := scan(); len(th.leaders) != 1 || !th.leads(30) {
		t.Errorf("%d lead, want 30", len(th.leaders))
	}
	s.Lead("job", nil)
	if th := scan(); len(th.leaders) != 1 || !th.leads(10) {
		t.Errorf("%d lead, want 10", len(th.leaders))
	}
	s.Remove("job")
	if len(s.holders) != 0 {
		t.Errorf("%v is kept of a job that is not followed", s.holders)
	}
}
