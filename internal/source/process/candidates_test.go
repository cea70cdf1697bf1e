package process

import (
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

// lookedAt is a source of a machine's files that has listed its processes once.
func (t tree) lookedAt(owner func(pid int) string) *Source {
	t.Helper()
	t.uptime(1000)
	s := New(t.root)
	t.Cleanup(s.Close)
	s.WatchCandidates(owner)
	read(t, s)
	return s
}

func anyone(int) string { return "" }

// uptime writes the seconds since boot.
func (t tree) uptime(seconds int) {
	t.Helper()
	fixture.Write(t, t.root, "proc/uptime", []byte(strconv.Itoa(seconds)+".00 0.00\n"))
}

// lookAgain lets a second pass before the next list.
func (s *Source) lookAgain() { s.candidates.due = 0 }

// A process that works becomes a candidate, with what it has done since it was idle, or since its start. Followed, it
// goes on from there.
func TestCandidates(t *testing.T) {
	tr := tree{t, t.TempDir()}
	tr.put(10, 1, 100, 'S', counts{cpuTicks: 900, readBytes: 7 << 30}, counts{})
	tr.put(11, 1, 100, 'S', counts{cpuTicks: 50}, counts{})
	tr.put(2, 0, 1, 'S', counts{}, counts{})
	tr.put(3, 2, 1, 'S', counts{cpuTicks: 100}, counts{})
	s := tr.lookedAt(anyone)
	if out := read(t, s); len(out.Candidates) != 0 {
		t.Fatalf("at first: got %+v, want none", out.Candidates)
	}
	tr.uptime(1001)
	tr.put(3, 2, 1, 'S', counts{cpuTicks: 900}, counts{}) // a kernel thread
	tr.put(10, 1, 100, 'D', counts{cpuTicks: 903, readBytes: 7<<30 + 50<<20}, counts{})
	tr.put(11, 1, 100, 'S', counts{cpuTicks: 51}, counts{})
	tr.put(20, 11, 100050, 'R', counts{cpuTicks: 30, readBytes: 1 << 10}, counts{})
	s.lookAgain()
	before := sample.Now().Mono
	out := read(t, s)
	if len(out.Candidates) != 2 {
		t.Fatalf("got %+v, want 10 and 20", out.Candidates)
	}
	for _, c := range out.Candidates {
		switch c.ID {
		case ID(10, 100):
			if c.ReadBytes != 50<<20 || c.CPUTime != 3*Tick || c.Began > before {
				t.Errorf("got %+v, want 50 MiB and 3 ticks", c)
			}
		case ID(20, 100050):
			if c.CPUTime != 30*Tick || before-c.Began < 500*time.Millisecond || before-c.Began > 600*time.Millisecond {
				t.Errorf("got %+v, want 30 ticks in the half of a second since its start", c)
			}
		default:
			t.Errorf("got the candidate %s", c.ID)
		}
	}

	tr.put(21, 10, 100110, 'R', counts{cpuTicks: 4}, counts{}) // a child of a candidate
	tr.uptime(1002)
	tr.put(10, 1, 100, 'D', counts{cpuTicks: 905, readBytes: 7<<30 + 90<<20}, counts{})
	s.lookAgain()
	read(t, s)
	if c := read(t, s).Candidates[1]; c.Processes != 2 || c.CPUTime != 9*Tick || c.ReadBytes != 90<<20 {
		t.Errorf("with a child: got %+v, want 2 processes, 9 ticks, 90 MiB", c)
	}
	tr.children(10, 21)
	if err := s.Add(ID(10, 100), 10, Options{}); err != nil {
		t.Fatal(err)
	}
	tr.put(10, 1, 100, 'D', counts{cpuTicks: 906, readBytes: 7<<30 + 91<<20}, counts{})
	out = read(t, s)
	if len(out.Jobs) != 1 || len(out.Candidates) != 1 || out.Jobs[0].ReadBytes != 91<<20 ||
		out.Jobs[0].CPUTime != 10*Tick || out.Jobs[0].Processes != 2 {
		t.Errorf("as a job: got %+v, candidates %+v, want 91 MiB and 10 ticks of 2 processes", out.Jobs, out.Candidates)
	}
	s.lookAgain()
	read(t, s)
	if c := read(t, s).Candidates; len(c) != 1 || c[0].ID != ID(20, 100050) {
		t.Errorf("got the candidates %+v, want no job among them", c)
	}
}

// However many processes work, candidates are bounded. One that works more replaces one that does nothing any more.
func TestCandidatesAreBounded(t *testing.T) {
	tr := tree{t, t.TempDir()}
	const many = 300
	put := func(round int) {
		tr.uptime(1000 + round)
		for pid := 100; pid < 100+many; pid++ {
			tr.put(pid, 1, 10, 'R', counts{cpuTicks: uint64(round * 100)}, counts{})
		}
	}
	put(0)
	s := tr.lookedAt(anyone)
	for round := 1; round < 8; round++ {
		put(round)
		s.lookAgain()
		read(t, s)
	}
	if n := len(read(t, s).Candidates); n != maxCandidates {
		t.Errorf("got %d candidates, want %d", n, maxCandidates)
	}
	for _, j := range s.candidates.jobs {
		j.begun, j.score = j.begun-time.Minute, 0.1
	}
	put(9)
	tr.put(99, 1, 100800, 'R', counts{cpuTicks: 100}, counts{})
	s.lookAgain()
	read(t, s)
	if s.candidates.find(ID(99, 100800)) == nil {
		t.Error("one that works more is no candidate")
	}
	if n := len(s.candidates.known); n > many+1 {
		t.Errorf("%d processes are remembered, want %d at most", n, many+1)
	}
}

// A process of this machine becomes a candidate within some lists, and is dropped after its end.
func TestRealCandidate(t *testing.T) {
	s := New("")
	defer s.Close()
	s.WatchCandidates(anyone)
	read(t, s)
	cmd := exec.Command("sh", "-c", "while :; do :; done")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	end := func() {
		if !ended {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		ended = true
	}
	defer end()
	of, ok := StatOf("", cmd.Process.Pid)
	if !ok {
		t.Skip("this machine has no /proc")
	}
	id := ID(cmd.Process.Pid, of.Start)
	for deadline := time.Now().Add(20 * time.Second); s.candidates.find(id) == nil; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("a process that works is no candidate after 20 s")
		}
		read(t, s)
	}
	end()
	s.lookAgain()
	read(t, s)
	if s.candidates.find(id) != nil {
		t.Error("it has ended and is still a candidate")
	}
}

// The cost of a list on this machine, and of a reading of its candidates.
func BenchmarkCandidates(b *testing.B) {
	s := New("")
	defer s.Close()
	s.WatchCandidates(anyone)
	var out sample.Sample
	for range 3 {
		s.lookAgain()
		_ = s.Read(&out)
	}
	list, err := os.ReadDir("/proc")
	if err != nil {
		b.Skip(err)
	}
	for name, look := range map[string]bool{"reading": false, "list": true} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				out.Reset()
				if look {
					s.lookAgain()
				}
				_ = s.Read(&out)
			}
			b.ReportMetric(float64(len(list)), "entries")
			b.ReportMetric(float64(len(out.Candidates)), "candidates")
		})
	}
}

// One client cannot have all places, and its many processes do not keep those of others from being looked at.
func TestCandidatesOfClients(t *testing.T) {
	tr := tree{t, t.TempDir()}
	const many, victim, second = 200, 20, 21
	put := func(round int) {
		tr.uptime(1000 + 40*round) // no process is young for two rounds
		for pid := 100; pid < 100+many; pid++ {
			tr.put(pid, 1, uint64(10+pid), 'R', counts{cpuTicks: uint64(round * 10_000)}, counts{})
		}
		tr.put(victim, 1, 10, 'R', counts{cpuTicks: uint64(round * 300)}, counts{})
		tr.put(second, 1, 11, 'R', counts{cpuTicks: uint64(round * 300)}, counts{})
		for pid := 1000 + 100*round; pid < 1100+100*round; pid++ { // each lives for a round
			tr.put(pid, 1, uint64(100_000+4000*round-1), 'R', counts{cpuTicks: 1}, counts{})
			if round > 0 {
				_ = os.RemoveAll(tr.root + "/proc/" + strconv.Itoa(pid-100))
			}
		}
	}
	put(0)
	s := tr.lookedAt(func(pid int) string {
		if pid == victim || pid == second {
			return "uid 1"
		}
		return "uid 2"
	})
	for round := 1; round < 10; round++ {
		put(round)
		s.lookAgain()
		read(t, s)
	}
	held := map[string]int{}
	for _, j := range s.candidates.jobs {
		held[j.client]++
	}
	if held["uid 1"] != 2 || held["uid 2"] != maxCandidates-2 {
		t.Errorf("got %v, want 2 candidates of uid 1 and %d of uid 2", held, maxCandidates-2)
	}
	// The places of a client that does not work any more are free to others, and only those.
	for _, j := range s.candidates.jobs {
		j.begun -= time.Minute
	}
	idle := s.candidates.find(ID(second, 11))
	idle.score = 0.5
	if !s.makePlace("uid 2", 2, time.Hour) || s.candidates.find(ID(second, 11)) != nil ||
		s.candidates.find(ID(victim, 10)) == nil {
		t.Error("got no place of an idle candidate, want it, and only that")
	}
}

// Processes of one client leave room in memory for those of others.
func TestKnownOfClients(t *testing.T) {
	c := candidates{known: map[int]*known{}, number: map[string]int{}}
	for pid := range maxKnown {
		c.remember(pid, &known{client: "many"})
	}
	if n := len(c.known); n != maxKnown/2 {
		t.Errorf("got %d processes of one client, want %d", n, maxKnown/2)
	}
	if !c.remember(maxKnown, &known{client: "other"}) {
		t.Error("got no room for another client")
	}
	for pid := range maxKnown / 2 {
		c.forget(pid)
	}
	if len(c.number) != 1 || len(c.known) != 1 {
		t.Errorf("got %v, want one process of one client", c.number)
	}
}

// Candidates lists those that did most first, and counts what is not to be read.
func TestCandidateList(t *testing.T) {
	tr := tree{t, t.TempDir()}
	tr.put(10, 1, 100, 'S', counts{}, counts{})
	tr.put(11, 1, 100, 'S', counts{}, counts{})
	s := tr.lookedAt(func(int) string { return "" })
	tr.uptime(1001)
	tr.put(10, 1, 100, 'R', counts{cpuTicks: 20}, counts{})
	tr.put(11, 1, 100, 'D', counts{readBytes: 50 << 20}, counts{})
	s.lookAgain()
	read(t, s)
	s.mu.Lock()
	s.candidates.known[99] = &known{hidden: true}
	s.mu.Unlock()
	list, hidden := s.Candidates()
	if len(list) != 2 || list[0].PID != 11 || list[1].PID != 10 || list[0].Score < 10 || hidden != 1 {
		t.Errorf("got %+v and %d hidden, want 11 with a score over 10, then 10, and 1 hidden", list, hidden)
	}
}
