package window_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/ledger"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/test/windowtest"
)

func TestReportOfStorageBoundEpoch(t *testing.T) {
	m := windowtest.New(t, true)
	w := m.Begin(window.Epoch)
	for range 20 {
		m.Step(40*time.Millisecond, 0, 0)
		m.Step(0, 90*time.Millisecond, 5*time.Millisecond)
	}
	r := m.Report(w)
	if r.Verdict != window.StorageBound || r.Uncertainty > 0.01 {
		t.Fatalf("%s, uncertainty %v: %s", r.Verdict, r.Uncertainty, r.Missing)
	}
	if r.Busy+r.Storage+r.CPU+r.Other != r.GPUTime() {
		t.Errorf("the ledger does not add up: %v %v %v %v", r.Busy, r.Storage, r.CPU, r.Other)
	}
	if d := (r.Storage - 1800*time.Millisecond).Abs(); d > time.Millisecond {
		t.Errorf("storage stall %v, want 1.8 s", r.Storage)
	}
	if len(r.Disks) != 1 || r.Disks[0].ReadOperations != 500 || r.Disks[0].ReadBytes != 500*4096 {
		t.Errorf("disks %+v", r.Disks)
	}
	if r.Speedup < 1.8 || r.Speedup > 1.85 {
		t.Errorf("speed-up bound %v, want 4/2.2", r.Speedup)
	}
}

// A detected load may have begun before the first reading of its job: that time is divided as the rest, and uncertain.
func TestLoadThatBeganBeforeItsJobWasRead(t *testing.T) {
	m := windowtest.New(t, true)
	w := m.Begin(window.ModelLoad)
	w.Unread = 400 * time.Millisecond
	w.Phases = []window.Phase{{Name: "early", Start: w.Start.Mono, End: w.Start.Mono + w.Unread},
		{Name: "read", Start: w.Start.Mono, End: w.Start.Mono + 2*time.Second}}
	for range 4 { // nothing is known of these
		m.Step(0, 0, 0)
	}
	for range 16 {
		m.Step(25*time.Millisecond, 50*time.Millisecond, 0)
	}
	r := m.Report(w)
	if r.Duration() != 2*time.Second || r.Busy+r.Storage+r.CPU+r.Other != 2*time.Second {
		t.Errorf("got %v: busy %v, storage %v, CPU %v, other %v, want 2 s", r.Duration(), r.Busy, r.Storage, r.CPU, r.Other)
	}
	if (r.Busy-500*time.Millisecond).Abs() > time.Millisecond || (r.Storage-time.Second).Abs() > 20*time.Millisecond {
		t.Errorf("got busy %v, storage %v, want a quarter and a half", r.Busy, r.Storage)
	}
	if !r.Interrupted {
		t.Error("got a report without a gap, want one where readings are missing")
	}
	if r.Uncertainty < 0.2 || r.Uncertainty > 0.25 {
		t.Errorf("got uncertainty %v, want the share that was not read, 0.2, and a little", r.Uncertainty)
	}
	if want := (window.Missing{Reason: window.NotFollowed, Time: w.Unread}); len(r.Missing) != 1 || r.Missing[0] != want {
		t.Errorf("got %+v missing, want %+v", r.Missing, want)
	}
	if r.PhaseReports[0].Split || !r.PhaseReports[1].Split {
		t.Errorf("got ledgers of phases %v, %v, want one of the phase that was read in part alone",
			r.PhaseReports[0].Split, r.PhaseReports[1].Split)
	}
}

func TestStallsAreStretches(t *testing.T) {
	m := windowtest.New(t, true)
	w := m.Begin(window.ModelLoad)
	for _, stalled := range []int{5, 1, 0, 40} { // ticks of stall, ten ticks of work after each
		for range stalled {
			m.Step(0, windowtest.Tick, 0)
		}
		for range 10 {
			m.Step(windowtest.Tick, 0, 0)
		}
	}
	r := m.Report(w)
	if len(r.Stalls) != 2 {
		t.Fatalf("%+v, want the stretches of 0.5 and of 4 s", r.Stalls)
	}
	if first := r.Stalls[0]; first.End-first.Start != 5*windowtest.Tick {
		t.Errorf("first stretch %+v", first)
	}
}

func TestManyStallsAreBounded(t *testing.T) {
	m := windowtest.New(t, true)
	w := m.Begin(window.Epoch)
	for i := range 100 {
		for range 3 + i%3 {
			m.Step(0, windowtest.Tick, 0)
		}
		for range 4 {
			m.Step(windowtest.Tick, 0, 0)
		}
	}
	if r := m.Report(w); len(r.Stalls) != 8 {
		t.Fatalf("%d stalls, want %d", len(r.Stalls), 8)
	}
}

func TestSharedPressureNeedsOwnIO(t *testing.T) {
	m := windowtest.New(t, true)
	w := m.Begin(window.Epoch)
	for range 20 { // another process waits for the disk; the job does not read
		m.Now += windowtest.Tick
		m.Some += 90 * time.Millisecond
		m.Disk.ReadIOs += 10
		m.Disk.ReadBytes += 40960
		m.Read()
	}
	if r := m.Report(w); r.Storage != 0 || r.Verdict != window.Unknown {
		t.Fatalf("storage stall %v, %s; want 0 and %s: another process waited", r.Storage, r.Verdict, window.Unknown)
	}
}

// TestPressureOfOthers: a job waits for no longer than the operations of its disk took, whatever the pressure that it
// shares is.
func TestPressureOfOthers(t *testing.T) {
	for _, own := range []bool{false, true} {
		m := windowtest.New(t, false)
		m.Target.Own = own
		m.Ledger.SetTargets([]ledger.Target{m.Target})
		w := m.Begin(window.Epoch)
		for range 20 {
			m.Some += 50 * time.Millisecond
			m.Job.ReadBytes += 100 << 10
			m.Step(0, 2*time.Millisecond, 40*time.Millisecond)
		}
		r := m.Report(w)
		if took := 40 * time.Millisecond; (r.Storage <= 2*took) == own || (r.Verdict == window.CPUBound) == own {
			t.Errorf("own pressure %v: %s, waited for storage %v, operations took %v", own, r.Verdict, r.Storage, took)
		}
		if sum := r.Storage + r.CPU + r.Other; sum != r.GPUTime() || r.Speedup < 1 || r.SpeedupLow > r.Speedup {
			t.Errorf("own pressure %v: the parts are %v of %v, speed-up %v from %v", own, sum, r.GPUTime(), r.Speedup,
				r.SpeedupLow)
		}
	}
}

// TestStorageWithoutADisk: read calls without I/O on a local disk may be of pipes. Without evidence of threads, no
// waiting for them is known.
func TestStorageWithoutADisk(t *testing.T) {
	for _, remote := range []bool{false, true} {
		m := windowtest.New(t, true)
		w := m.Begin(window.Epoch)
		m.Target.Remote = remote
		m.Ledger.SetTargets([]ledger.Target{m.Target})
		for range 20 {
			m.Now += windowtest.Tick
			m.Some += 90 * time.Millisecond
			m.Job.ReadChars += 40960
			m.Read()
		}
		if r := m.Report(w); r.Verdict != window.Unknown || len(r.Disks) != 0 {
			t.Errorf("remote %v: got %s with %+v, want %s", remote, r.Verdict, r.Disks, window.Unknown)
		}
	}
}

// TestSourceEndsAndLedgerContinues: after the last job has ended, the machine's own ledger continues in small cells.
// These distinguish waiting and idleness that took turns.
func TestSourceEndsAndLedgerContinues(t *testing.T) {
	m := windowtest.New(t, true)
	m.Target = ledger.Target{GPU: "gpu0"}
	m.Ledger.SetTargets([]ledger.Target{m.Target})
	m.Step(0, 0, 0)
	m.WithoutJob = true
	for range 30 {
		m.Step(0, 0, 0)
	}
	w := m.Begin(window.Epoch)
	w.Job = ""
	for range 20 {
		m.Step(windowtest.Tick, windowtest.Tick, 0) // a process waits for the disk while the GPU works
		m.Step(0, 0, 0)
	}
	if r := m.Report(w); r.Storage > 50*time.Millisecond {
		t.Errorf("storage stall %v, want at most 50 ms: the GPU worked while a process waited", r.Storage)
	}
}

func TestUnusedGPUIsLeftOut(t *testing.T) {
	m := windowtest.New(t, true)
	w := m.Begin(window.Epoch)
	for range 20 {
		m.Step(95*time.Millisecond, 0, 0)
	}
	m.End(&w)
	info := m.Info()
	info.GPUs = []string{"gpu0", "gpu1"}
	r := window.Make(m.History, &w, m.Info())
	if r.Verdict != window.GPUBound || len(r.GPUIDs) != 1 {
		t.Errorf("%s on %v: %s", r.Verdict, r.GPUIDs, r.Missing)
	}
}

func TestWithoutGPU(t *testing.T) {
	m := windowtest.New(t, false)
	w := m.Begin(window.Epoch)
	for range 20 {
		m.Step(0, 60*time.Millisecond, 40*time.Millisecond)
	}
	r := m.Report(w)
	if len(r.GPUIDs) != 0 || r.Busy != 0 || r.Storage+r.CPU+r.Other != r.Duration() {
		t.Errorf("GPUs %v, %v + %v + %v + %v, want parts of %v without a GPU", r.GPUIDs, r.Busy, r.Storage, r.CPU, r.Other,
			r.Duration())
	}
}

func TestQueueWithoutPressure(t *testing.T) {
	m := windowtest.NewWithoutPressure(t, true)
	w := m.Begin(window.Epoch)
	for range 20 {
		m.Step(0, 90*time.Millisecond, 0)
	}
	if r := m.Report(w); r.Verdict != window.StorageBound || r.Pressure != nil {
		t.Fatalf("%s, pressure %+v", r.Verdict, r.Pressure)
	}
}

// TestLedgerAddsUp plays random ticks: the parts add up to the window, to the nanosecond.
func TestLedgerAddsUp(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		m := windowtest.New(t, seed%2 == 0)
		m.Step(0, 0, 0)
		w := m.Begin(window.Epoch)
		for range 50 {
			d := func() time.Duration { return time.Duration(rng.Int64N(int64(2 * windowtest.Tick))) }
			m.Step(d(), d(), d())
			if rng.IntN(20) == 0 { // the disk is unplugged and comes back from zero, the GPU's counter resets
				m.Disk = sample.Disk{Name: "sda", Leaf: true, ReadIOs: 1}
				m.GPU = 0
			}
		}
		r := m.Report(w)
		if r.Busy < 0 || r.Storage < 0 || r.CPU < 0 || r.Other < 0 || r.Busy+r.Storage+r.CPU+r.Other != r.GPUTime() {
			t.Fatalf("seed %d: %v + %v + %v + %v is not %v", seed, r.Busy, r.Storage, r.CPU, r.Other, r.GPUTime())
		}
	}
}

func BenchmarkReport(b *testing.B) {
	m := windowtest.New(b, true)
	w := m.Begin(window.Epoch)
	for range 6_000 {
		m.Step(40*time.Millisecond, 50*time.Millisecond, 10*time.Millisecond)
	}
	m.End(&w)
	info := m.Info()
	for range 9 {
		info.Leaves = append(info.Leaves, "sda")
	}
	b.ReportAllocs()
	for b.Loop() {
		window.Make(m.History, &w, m.Info())
	}
}

// A load of data in memory does not wait for storage, whatever the machine's pressure is, unless its job fetched other
// data at the same time.
func TestLoadFromMemory(t *testing.T) {
	const size = 300 << 20
	for name, c := range map[string]struct {
		seen    window.Seen
		fetched uint64 // by the job, in all
		want    window.Verdict
	}{
		"tmpfs":                          {window.Seen{Size: size, Device: window.InMemory}, 0, window.Unknown},
		"cached":                         {window.Seen{Size: size, Cached: size, HasCached: true}, 1 << 20, window.Unknown},
		"cached, and fetched other data": {window.Seen{Size: size, Cached: size, HasCached: true}, 20 << 20, window.StorageBound},
		"nearly cached":                  {window.Seen{Size: size, Cached: size - 4096, HasCached: true}, 0, window.StorageBound},
		"unknown":                        {window.Seen{Size: size}, 0, window.StorageBound},
	} {
		m := windowtest.New(t, false)
		m.Target.Own = true
		m.Ledger.SetTargets([]ledger.Target{m.Target})
		w := m.Begin(window.ModelLoad)
		w.Seen = c.seen
		for i := range 20 {
			m.Job.ReadBytes -= 24 * 4096 // of 25 that the step adds: other processes read these
			m.Job.ReadChars -= 24 * 4096
			m.Step(0, 91*time.Millisecond, 9*time.Millisecond)
			if i == 10 {
				m.Job.ReadBytes += c.fetched
			}
		}
		r := m.Report(w)
		if r.Verdict != c.want || c.want == window.Unknown && (r.Slow || len(r.Stalls) > 0) {
			t.Errorf("%s: %s, slow %v, %d stalls: %v", name, r.Verdict, r.Slow, len(r.Stalls), r.Missing)
		}
		if sum := r.Busy + r.Storage + r.CPU + r.Other; sum != r.GPUTime() {
			t.Errorf("%s: the parts are %v, want %v", name, sum, r.GPUTime())
		}
	}
}

// Where a detected load of a second began and ended may be open by half of it. It has a verdict if that is the same
// wherever its ends are.
func TestVerdictWhoseEndsAreOpen(t *testing.T) {
	const idle, storage, cpu = 0, 1, 2
	for _, c := range []struct {
		name          string
		before, after int
		want          window.Verdict
		slow          bool
		lacks         bool
	}{
		{"idle before and after", idle, idle, window.StorageBound, false, false},
		{"storage before and after", storage, storage, window.StorageBound, true, false},
		{"work before", cpu, idle, window.Unknown, false, true},
		{"work after", idle, cpu, window.Unknown, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := windowtest.New(t, true)
			ticks := func(n, of int) {
				for range n {
					m.Step(0, []time.Duration{0, windowtest.Tick, 0}[of], []time.Duration{0, 0, windowtest.Tick}[of])
				}
			}
			ticks(10, c.before)
			w := m.Begin(window.ModelLoad)
			ticks(8, storage)
			ticks(2, cpu)
			m.End(&w)
			ticks(10, c.after)
			w.StartEdge, w.EndEdge = nil, nil
			w.StartOpen, w.Open = 600*time.Millisecond, 1200*time.Millisecond
			r := window.Make(m.History, &w, m.Info())
			if r.Uncertainty < 0.6 || r.Verdict != c.want || r.Slow != c.slow {
				t.Errorf("got %s, slow %v, uncertainty %.2f; want %s, %v and 0.6: what both ends leave open",
					r.Verdict, r.Slow, r.Uncertainty, c.want, c.slow)
			}
			if r.Lacks(window.OpenEnds) != c.lacks || r.Lacks(window.TooShort) {
				t.Errorf("got %+v missing, want %s: %v, and nothing else", r.Missing, window.OpenEnds, c.lacks)
			}
		})
	}
}

// A window is too short where its length would leave too much open with known ends, too.
func TestShortWithOpenEnds(t *testing.T) {
	for _, c := range []struct {
		length, open time.Duration
		want         window.Reason
	}{
		{time.Minute, 30 * time.Second, window.OpenEnds},
		{time.Second, 2 * time.Second, window.OpenEnds},
		{100 * time.Millisecond, time.Second, window.TooShort},
	} {
		m := windowtest.New(t, true)
		w := m.Begin(window.ModelLoad)
		for range c.length / windowtest.Tick {
			m.Step(windowtest.Tick/4, windowtest.Tick/4, windowtest.Tick/4)
		}
		m.End(&w)
		w.StartEdge, w.EndEdge = nil, nil
		w.StartOpen, w.Open = c.open/2, c.open
		r := window.Make(m.History, &w, m.Info())
		if r.Verdict != window.Unknown || len(r.Missing) != 1 || r.Missing[0].Reason != c.want ||
			c.want == window.OpenEnds && r.Missing[0].Time != c.open {
			t.Errorf("%v open of %v: got %s and %+v missing, want %s", c.open, c.length, r.Verdict, r.Missing, c.want)
		}
	}
}
