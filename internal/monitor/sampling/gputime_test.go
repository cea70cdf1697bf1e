package sampling

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
)

// tape feeds Readings without sources.
type tape struct {
	r    *Readings
	at   time.Duration
	busy time.Duration
	idle bool // the GPUs do not work
}

func newTape(t testing.TB) *tape {
	t.Helper()
	r, err := New(Config{Interval: 100 * time.Millisecond}, &Problems{})
	if err != nil {
		t.Fatal(err)
	}
	return &tape{r: r, at: time.Second}
}

func (p *tape) mark(m recording.Mark) { p.r.Apply(&recording.Entry{Mark: &m}) }

// step feeds the readings of some seconds, in which the GPUs work for half of the time. held are the processes on them
// by number, 1 and 2 are those of the jobs a and b, and running how many of a job run.
func (p *tape) step(length time.Duration, gpus []sample.GPU, running map[string]int, held ...sample.GPUProcess) {
	for end := p.at + length; p.at < end; {
		p.at += 100 * time.Millisecond
		if !p.idle {
			p.busy += 50 * time.Millisecond
		}
		stamp := sample.Stamp{Mono: p.at, Wall: time.Unix(1000, 0).Add(p.at)}
		jobs := &sample.Sample{At: stamp}
		for i, id := range []string{"a", "b"} {
			jobs.Jobs = append(jobs.Jobs, sample.Job{ID: id, HasIO: true, Processes: running[id]})
			if running[id] > 0 {
				jobs.Processes = append(jobs.Processes, sample.Process{PID: i + 1, Job: id})
			}
		}
		all := make([]sample.GPU, len(gpus))
		for i, g := range gpus {
			g.Busy = p.busy
			all[i] = g
		}
		for source, s := range map[string]*sample.Sample{
			"process": jobs, "gpu": {At: stamp, GPUs: all, GPUProcesses: held, GPUProcessesRead: true},
			"cpu":      {At: stamp, Cores: []sample.Core{{Name: "cpu0"}}},
			"pressure": {At: stamp, Pressures: []sample.Pressure{{Resource: sample.IO}}},
			"disk":     {At: stamp, Disks: []sample.Disk{{Name: "vda", Leaf: true}}},
		} {
			p.r.Apply(&recording.Entry{Source: source, Sample: s})
		}
		p.mark(recording.Mark{Op: recording.Tick})
	}
}

func (p *tape) rows() map[string]sample.GPUTime {
	rows := map[string]sample.GPUTime{}
	now := p.r.Collect()
	for _, r := range now.GPUTimes {
		rows[r.GPU+" "+r.Job] = r
	}
	return rows
}

func near(t *testing.T, what string, got, want time.Duration) {
	t.Helper()
	if off := got - want; off < -time.Millisecond || off > time.Millisecond {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// Two jobs that share a GPU get half of its time each, from when the second one comes until the first one ends.
func TestSharedGPU(t *testing.T) {
	p := newTape(t)
	gpus := []sample.GPU{{ID: "GPU-1"}}
	for _, id := range []string{"a", "b"} {
		p.mark(recording.Mark{Op: recording.Follow, ID: id, OnlyHeld: true, Name: &sample.JobName{Name: "job " + id}})
	}
	both := map[string]int{"a": 1, "b": 1}
	a, b := sample.GPUProcess{GPU: "GPU-1", PID: 1}, sample.GPUProcess{GPU: "GPU-1", PID: 2}
	p.step(time.Second, gpus, both)
	before := p.rows()
	p.step(10*time.Second, gpus, both, a)
	p.step(10*time.Second, gpus, both, a, b)
	p.step(10*time.Second, gpus, map[string]int{"b": 1}, b)
	p.step(10*time.Second, gpus, nil)
	rows := p.rows()
	near(t, "time of a", rows["GPU-1 a"].Sum(), 15*time.Second)
	near(t, "time of b", rows["GPU-1 b"].Sum(), 15*time.Second)
	near(t, "allocated to a", rows["GPU-1 a"].Allocated, 20*time.Second)
	near(t, "busy of a", rows["GPU-1 a"].Busy, 7500*time.Millisecond)
	near(t, "time without a job", rows["GPU-1 "].Sum()-before["GPU-1 "].Sum(), 10*time.Second)
	near(t, "idle without a job", rows["GPU-1 "].Idle-before["GPU-1 "].Idle, 5*time.Second)
	if !rows["GPU-1 a"].Shared || rows["GPU-1 a"].Held {
		t.Errorf("got %+v, want it shared and not held", rows["GPU-1 a"])
	}
	now := p.r.Collect()
	var sum sample.GPUTime
	for _, r := range now.GPUTimes {
		sum.Busy, sum.Storage, sum.CPU = sum.Busy+r.Busy, sum.Storage+r.Storage, sum.CPU+r.CPU
		sum.Other, sum.Idle = sum.Other+r.Other, sum.Idle+r.Idle
	}
	if all := now.GPUTotals; len(all) != 1 || all[0].Sum() != sum.Sum() || all[0].Busy != sum.Busy ||
		all[0].Other != sum.Other || all[0].Idle != sum.Idle {
		t.Errorf("got the totals %+v, want the sums %+v", all, sum)
	}
	if len(now.JobNames) != 2 || now.JobNames[0].ID != "a" || now.JobNames[0].Name != "job a" {
		t.Errorf("got the names %+v, want those of a and b", now.JobNames)
	}
}

// Idle time of a GPU that is held is unused once it has lasted for five minutes, from its beginning on.
func TestUnused(t *testing.T) {
	p := newTape(t)
	gpus := []sample.GPU{{ID: "GPU-1"}}
	p.mark(recording.Mark{Op: recording.Follow, ID: "a", OnlyHeld: true, Name: &sample.JobName{Name: "job a"}})
	a := sample.GPUProcess{GPU: "GPU-1", PID: 1}
	run := func(length time.Duration, idle bool) sample.GPUTime {
		p.idle = idle
		p.step(length, gpus, map[string]int{"a": 1}, a)
		return p.rows()["GPU-1 a"]
	}
	run(time.Second, false)
	near(t, "after four minutes", run(4*time.Minute, true).Unused, 0)
	worked := run(time.Second, false)
	near(t, "after work", run(4*time.Minute, true).Unused, 0)
	near(t, "after eight minutes", run(4*time.Minute, true).Unused, 8*time.Minute)
	row := run(10*time.Second, false)
	near(t, "when it works again", row.Unused, 8*time.Minute)
	near(t, "other since then", row.Other-worked.Other, 8*time.Minute+5*time.Second)
	near(t, "in all", run(time.Minute, true).Unused, 8*time.Minute)
}

// A launcher is followed as well as its rank: the time is the rank's alone.
func TestRankOfALauncher(t *testing.T) {
	p := newTape(t)
	p.mark(recording.Mark{Op: recording.Follow, ID: "a"})
	p.mark(recording.Mark{Op: recording.Follow, ID: "b"})
	gpus := []sample.GPU{{ID: "GPU-1"}}
	p.step(time.Second, gpus, map[string]int{"a": 1, "b": 2})
	p.r.mu.Lock()
	p.r.now.latest.Jobs.Processes = []sample.Process{{PID: 7, Job: "a"}, {PID: 7, Job: "b"}}
	got := owners(&p.r.now.latest, p.r.now.jobs.byID)
	p.r.mu.Unlock()
	if len(got) != 0 {
		t.Errorf("got the owners %v of GPUs without processes, want none", got)
	}
	p.r.mu.Lock()
	p.r.now.latest.GPUs.GPUProcesses = []sample.GPUProcess{{GPU: "GPU-1", PID: 7}, {GPU: "GPU-1", PID: 8}}
	got = owners(&p.r.now.latest, p.r.now.jobs.byID)
	p.r.mu.Unlock()
	if len(got["GPU-1"]) != 2 || got["GPU-1"][0] != "a" || got["GPU-1"][1] != "" {
		t.Errorf("got the owners %q, want a, which has fewer processes, and one that is not followed", got["GPU-1"])
	}
}

// The memory that a feeder holds of a GPU is not the job's: neither the GPU's time, nor what leads its ledgers.
func TestGPUOfAFeeder(t *testing.T) {
	p := newTape(t)
	gpus := []sample.GPU{{ID: "GPU-1"}, {ID: "GPU-2"}}
	p.mark(recording.Mark{Op: recording.Follow, ID: "a", OnlyHeld: true, Name: &sample.JobName{Name: "job a"}})
	p.step(time.Second, gpus, map[string]int{"a": 1})
	p.r.mu.Lock()
	defer p.r.mu.Unlock()
	s := &p.r.now
	s.latest.Jobs.Processes = []sample.Process{{PID: 7, Job: "a", Feeder: true}, {PID: 8, Job: "a"}}
	held := []sample.GPUProcess{{GPU: "GPU-1", PID: 7}, {GPU: "GPU-2", PID: 8}}
	s.latest.GPUs.GPUProcesses = held
	if got := owners(&s.latest, s.jobs.byID); !slices.Equal(got["GPU-1"], []string{""}) ||
		!slices.Equal(got["GPU-2"], []string{"a"}) {
		t.Errorf("got the owners %q, want none of the feeder's GPU", got)
	}
	s.jobs.learnGPUs(held, s.latest.Jobs.Processes)
	if got := s.jobs.byID["a"]; !slices.Equal(got.gpus, []string{"GPU-2"}) || got.leader("GPU-1", 0) == 7 {
		t.Errorf("got the GPUs %q and the leader %d, want GPU-2 alone", got.gpus, got.leader("GPU-1", 0))
	}
	if got := s.jobs.holders(held, s.latest.Jobs.Processes)["a"]; !slices.Equal(got, []int{8}) {
		t.Errorf("got the holders %v, want the job's own", got)
	}
}

// What a process holds that is not followed is not idle; and of a GPU with MIG devices only these count.
func TestUnknownHolderAndMIG(t *testing.T) {
	p := newTape(t)
	gpus := []sample.GPU{{ID: "GPU-1"}, {ID: "MIG-1", Parent: "GPU-1"}}
	p.step(time.Second, gpus, nil)
	before := p.rows()
	p.step(4*time.Second, gpus, nil, sample.GPUProcess{GPU: "MIG-1", PID: 99})
	rows := p.rows()
	near(t, "busy", rows["MIG-1 "].Busy-before["MIG-1 "].Busy, 2*time.Second)
	// The process is listed at the end of the first reading.
	near(t, "other", rows["MIG-1 "].Other-before["MIG-1 "].Other, 1950*time.Millisecond)
	near(t, "allocated", rows["MIG-1 "].Allocated, 3900*time.Millisecond)
	if _, found := rows["GPU-1 "]; found || len(rows) != 1 {
		t.Errorf("got the rows %+v, want one of the MIG device", rows)
	}
}

// Without a GPU every tick completes ledgers. Their growth is added up once a second, and when a job leaves.
func TestTimesOnceASecond(t *testing.T) {
	p := newTape(t)
	p.mark(recording.Mark{Op: recording.Follow, ID: "a"})
	until := func() (of sample.GPUTime) { return p.rows()[" a"] }
	ends := map[time.Duration]bool{}
	p.step(2500*time.Millisecond, nil, map[string]int{"a": 1}) // from 1 s on
	for range 20 {
		p.step(100*time.Millisecond, nil, map[string]int{"a": 1})
		ends[until().Until.Mono] = true
	}
	if len(ends) != 3 || !ends[3*time.Second] || !ends[4*time.Second] || !ends[5*time.Second] {
		t.Errorf("got the ends %v in the two seconds from 3.5 s on, want 3, 4 and 5 s", ends)
	}
	p.step(300*time.Millisecond, nil, map[string]int{"a": 1})
	p.mark(recording.Mark{Op: recording.Leave, ID: "a"})
	if r := until(); r.Until.Mono != p.at || r.Sum() != r.Until.Mono-r.Began.Mono {
		t.Errorf("got %v up to %v after the job left, want all of the time up to %v", r.Sum(), r.Until.Mono, p.at)
	}
}

// Rows are bounded: the oldest job that has ended goes first, and without one the time is that of no job.
func TestBoundOfRows(t *testing.T) {
	var times gpuTimes
	stamp := func(at time.Duration) sample.Stamp { return sample.Stamp{Mono: at} }
	for i := range maxTimes {
		times.row("GPU-1", string(rune('a'+i)), 0, time.Duration(i+1), stamp(0)).Held = i != 5
	}
	if r := times.row("GPU-1", "new", 0, 1, stamp(0)); r.Job != "new" || len(times.rows) != maxTimes {
		t.Errorf("got a row of %q and %d rows, want the new job in place of the one that ended, and %d", r.Job,
			len(times.rows), maxTimes)
	}
	times.rows[len(times.rows)-1].Held = true
	if r := times.row("GPU-1", "newer", 0, 1, stamp(0)); r.Job != "" {
		t.Errorf("got a row of %q, want that of no job", r.Job)
	}
}

// BenchmarkGPUTime measures the ledgers and counters of a round of readings on a machine with 16 GPUs: without jobs and
// with 64, four on each GPU. Reading /proc is not included.
func BenchmarkGPUTime(b *testing.B) {
	for _, jobs := range []int{0, 64} {
		b.Run(strconv.Itoa(jobs), func(b *testing.B) {
			p := newTape(b)
			gpus := make([]sample.GPU, 16)
			var held []sample.GPUProcess
			all := &sample.Sample{}
			for i := range gpus {
				gpus[i].ID = "GPU-" + strconv.Itoa(i)
			}
			for i := range jobs {
				id := "job " + strconv.Itoa(i)
				p.mark(recording.Mark{Op: recording.Follow, ID: id, OnlyHeld: true})
				all.Jobs = append(all.Jobs, sample.Job{ID: id, HasIO: true, Processes: 1})
				all.Processes = append(all.Processes, sample.Process{PID: i + 1, Job: id})
				held = append(held, sample.GPUProcess{GPU: gpus[i%16].ID, PID: i + 1})
			}
			for n := 0; b.Loop(); n++ {
				p.at += 100 * time.Millisecond
				stamp := sample.Stamp{Mono: p.at, Wall: time.Unix(1000, 0).Add(p.at)}
				for i := range gpus {
					gpus[i].Busy += 50 * time.Millisecond
				}
				all.At = stamp
				reading := &sample.Sample{At: stamp, GPUs: gpus}
				if n%10 == 0 {
					reading.GPUProcesses, reading.GPUProcessesRead = held, true
				}
				if jobs > 0 {
					p.r.Append("process", all, nil)
				}
				p.r.Append("gpu", reading, nil)
				p.r.Append("cpu", &sample.Sample{At: stamp, Cores: []sample.Core{{Name: "cpu0"}}}, nil)
				p.r.Append("pressure", &sample.Sample{At: stamp, Pressures: []sample.Pressure{{Resource: sample.IO}}}, nil)
				p.r.Append("disk", &sample.Sample{At: stamp, Disks: []sample.Disk{{Name: "vda", Leaf: true}}}, nil)
				p.r.EndRound()
			}
			if rows := p.rows(); len(rows) < jobs {
				b.Errorf("got %d rows, want at least %d", len(rows), jobs)
			}
		})
	}
}
