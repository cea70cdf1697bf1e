package moments

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/procfile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gather reads a source until a leading thread was looked at so many times, and returns what it was in.
func gather(t *testing.T, s *Source, tid, least int) (all sample.Watched) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		var reading sample.Sample
		if err := s.Read(&reading); err != nil {
			t.Fatal(err)
		}
		for _, w := range reading.Moments.Threads {
			if w.TID != tid {
				continue
			}
			if all.From == 0 {
				all.From = w.From
			}
			all.Counted = all.Counted || w.Counted
			all.Ran, all.Ready = all.Ran+w.Ran, all.Ready+w.Ready
			all.Moments = append(all.Moments, w.Moments...)
		}
		if len(all.Moments) >= least {
			return all
		}
	}
	t.Fatalf("got %d moments in 30 s, want %d", len(all.Moments), least)
	return all
}

// follow returns a source that looks at a job, which ends with the test.
func follow(t *testing.T, pid int) *Source {
	t.Helper()
	s := New()
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := s.Read(&sample.Sample{}); err == nil {
			t.Error("a closed source reads")
		}
	})
	if err := s.Follow("job", []int{pid}); err != nil {
		t.Fatal(err)
	}
	s.Lead("job", []Leader{{TID: pid, Drives: true}})
	return s
}

// TestRunningLeader: a thread that works is seen to, and the kernel counts for how long.
func TestRunningLeader(t *testing.T) {
	program := start(t, "sh", "-c", "while :; do :; done")
	s := follow(t, program.Process.Pid)
	began := sample.Now().Mono
	got := gather(t, s, program.Process.Pid, 100)
	runs := 0
	for _, m := range got.Moments {
		if m.State == sample.StateReady {
			runs++
		}
		if len(m.Others) > 0 {
			t.Errorf("got %+v, want no others while it runs", m)
		}
	}
	if runs < 98*len(got.Moments)/100 {
		t.Errorf("it ran at %d of %d moments, want nearly all", runs, len(got.Moments))
	}
	most := sample.Now().Mono - began + 100*time.Millisecond
	if counted := got.Ran + got.Ready; !got.Counted || counted <= 0 || counted > most {
		t.Errorf("got %v on a CPU or ready, want at most %v", counted, most)
	}
}

// TestWaitingLeader: a shell waits for a program that began after the job was followed. What that one does is seen.
func TestWaitingLeader(t *testing.T) {
	program := start(t, "sh", "-c", "sleep 0.2; sh -c 'while :; do :; done'; true")
	s := follow(t, program.Process.Pid)
	worked := 0
	for _, m := range gather(t, s, program.Process.Pid, 150).Moments {
		for _, o := range m.Others {
			if o.State == sample.StateReady && !o.Same && m.State == sample.StateAsleep {
				worked++
				break
			}
		}
	}
	if worked < 20 {
		t.Errorf("the program was seen to work at %d moments, want it at most", worked)
	}
	s.Unfollow("job")
	var reading sample.Sample
	if err := s.Read(&reading); err != nil || reading.Moments != nil {
		t.Errorf("without a job: got %+v, %v, want nothing", reading.Moments, err)
	}
}

// TestEndedLeader: a thread that has ended is looked at no more, and nothing is reported of it.
func TestEndedLeader(t *testing.T) {
	program := start(t, "sleep", "0.3")
	s := follow(t, program.Process.Pid)
	gather(t, s, program.Process.Pid, 5)
	if err := program.Wait(); err != nil {
		t.Fatal(err)
	}
	var reading sample.Sample
	for range 2 {
		time.Sleep(20 * time.Millisecond)
		if err := s.Read(&reading); err != nil {
			t.Fatal(err)
		}
	}
	if len(reading.Moments.Threads) > 0 {
		t.Errorf("got %+v, want nothing of a thread that has ended", reading.Moments.Threads)
	}
}

// TestIdle: of a job without an open window there are fewer moments.
func TestIdle(t *testing.T) {
	program := start(t, "sleep", "100")
	count := func(open bool) int {
		s := follow(t, program.Process.Pid)
		s.Watch("job", open)
		var reading sample.Sample
		n := 0
		for range 10 {
			time.Sleep(100 * time.Millisecond)
			if err := s.Read(&reading); err != nil {
				t.Fatal(err)
			}
			for _, w := range reading.Moments.Threads {
				n += len(w.Moments)
			}
		}
		return n
	}
	if idle, open := count(false), count(true); open < 2*idle || idle == 0 {
		t.Errorf("got %d moments with an open window and %d without, want more with", open, idle)
	}
}

// TestStuckLook: a look that does not end is given up. Its thread is left out and named, and others go on.
func TestStuckLook(t *testing.T) {
	program := start(t, "sleep", "100")
	s := follow(t, program.Process.Pid)
	gather(t, s, program.Process.Pid, 3)
	s.mu.Lock()
	_, before := procfile.Late(0)
	s.at, s.since = 1<<22, sample.Now().Mono-stuckAfter // as if the kernel did not answer
	s.unstick(sample.Now().Mono)
	s.mu.Unlock()
	if late, _ := procfile.Late(before); len(late) != 1 || late[0].PID != 1<<22 || procfile.May("/proc", 1<<22) {
		t.Errorf("late are %v, want the thread", late)
	}
	gather(t, s, program.Process.Pid, 3)                                     // by another goroutine
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) { // the kernel answers
		s.mu.Lock()
		left := len(s.stuck)
		s.mu.Unlock()
		if left == 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the goroutine that was given up does not end")
		}
	}
}

// TestCells: a signal with the period of the moments, or any other, is seen for its share of the time. Moments are at
// most two cells apart, unless a look was late.
func TestCells(t *testing.T) {
	const gap = 10 * time.Millisecond
	random := rand.New(rand.NewPCG(1, 4))
	for _, period := range []time.Duration{gap, gap / 3, 2 * gap, 7 * gap} {
		var c cells
		var now, last, longest time.Duration
		on, all := 0, 0
		for now < 200*time.Second {
			at := c.next(now, gap, random)
			longest = max(longest, at-last)
			last, now = at, at
			if now += time.Millisecond; random.IntN(100) == 0 {
				now += 3 * gap
			}
			if all++; at%period < period/4 {
				on++
			}
		}
		if share := float64(on) / float64(all); math.Abs(share-0.25) > 0.01 {
			t.Errorf("on for a quarter of %v: seen at %.3f of the moments, want 0.25", period, share)
		}
		if longest > 5*gap+time.Millisecond || all < 19000 {
			t.Errorf("%d moments, at most %v apart, want 20,000 at most %v apart", all, longest, 5*gap)
		}
	}
}
