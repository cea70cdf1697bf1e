package ledger

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger/chain"
	"github.com/stallspan/stallspan/internal/sample"
)

// loop writes the events of a thread that reads, works and computes on a GPU in turn, and the readings of the GPU,
// whose samples are period apart. spins: it keeps its core while the GPU works.
func loop(
	read, work, compute time.Duration, spins bool, period, length time.Duration,
) (sample.Schedule, []sample.Sample) {
	return loopAfter(0, read, work, compute, spins, period, length)
}

// loopAfter is loop after a start in which the thread works and the GPU is not used.
func loopAfter(
	start, read, work, compute time.Duration, spins bool, period, length time.Duration,
) (sample.Schedule, []sample.Sample) {
	s := sample.Schedule{Until: length, Arch: "amd64"}
	add := func(e sample.ThreadEvent) {
		e.TID, e.PID = 1, 1
		s.Events = append(s.Events, e)
	}
	add(sample.ThreadEvent{Kind: sample.ThreadBegan, Job: "job"})
	add(sample.ThreadEvent{Kind: sample.ThreadIn})
	var busy []time.Duration // when the GPU begins
	at := start
	for at < length {
		add(sample.ThreadEvent{At: at, Kind: sample.ThreadOut, State: sample.StateBlocked, IOWait: true})
		at += read
		add(sample.ThreadEvent{At: at, Kind: sample.ThreadIn, Woken: at, WakerKind: sample.Interrupt})
		at += work
		busy = append(busy, at)
		if !spins {
			add(sample.ThreadEvent{At: at, Kind: sample.ThreadOut, State: sample.StateAsleep, Syscall: 230})
			at += compute
			add(sample.ThreadEvent{At: at, Kind: sample.ThreadIn, Woken: at, WakerKind: sample.Interrupt})
			continue
		}
		at += compute
	}
	var gpu []sample.Sample
	for at = 0; at <= length; at += period {
		worked := time.Duration(0)
		for _, began := range busy {
			worked += min(compute, max(0, at-began))
		}
		gpu = append(gpu, sample.Sample{At: sample.Stamp{Mono: at + ms}, GPUs: []sample.GPU{{ID: "gpu", Busy: worked}}})
	}
	return s, gpu
}

// divided returns the account of what a thread and its GPU did, from 100 ms on.
func divided(t *testing.T, events *sample.Schedule, gpu []sample.Sample, length time.Duration) *account {
	t.Helper()
	h := historyOf(t, gpu)
	timeline := chain.NewTimeline()
	timeline.Learn(events)
	a := newAccount(Target{Job: "job", GPU: "gpu", Leader: 1})
	a.schedule.timeline, a.schedule.names = timeline, &names{}
	a.schedule.lead(1)
	divideAll(t, a, h, length-500*ms)
	return a
}

// divideAll adds the time from 100 ms on to an account, in cells.
func divideAll(t *testing.T, a *account, h *history.History, until time.Duration) {
	t.Helper()
	a.end.At = 100 * ms
	for at := 200 * ms; at < until; at += 100 * ms {
		of, dark := a.scheduled(h, history.Point{At: at})
		if dark > 0 {
			t.Fatalf("at %v: got %v s without evidence, want none", at, dark)
		}
		a.totals.Busy += seconds(of.busy)
		a.totals.Storage += seconds(of.storage)
		a.totals.CPU += seconds(of.cpu)
		a.end.At = at
	}
}

func TestScheduledLoop(t *testing.T) {
	for name, test := range map[string]struct {
		read, work, compute time.Duration
		spins               bool
		period              time.Duration
	}{
		"sleeps, samples each 20 ms":              {60 * ms, 30 * ms, 50 * ms, false, 20 * ms},
		"spins, samples each 20 ms":               {60 * ms, 30 * ms, 50 * ms, true, 20 * ms},
		"sleeps, samples each 167 ms":             {60 * ms, 30 * ms, 50 * ms, false, 167 * ms},
		"spins, samples each 167 ms":              {60 * ms, 30 * ms, 50 * ms, true, 167 * ms},
		"spins, reads nothing":                    {0, 30 * ms, 70 * ms, true, 167 * ms},
		"sleeps, long steps, samples each 167 ms": {300 * ms, 100 * ms, 400 * ms, false, 167 * ms},
		"spins, long steps, samples each 167 ms":  {300 * ms, 100 * ms, 400 * ms, true, 167 * ms},
		"spins, works only while it spins":        {50 * ms, 0, 50 * ms, true, 167 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			const length = 8 * time.Second
			events, gpu := loop(test.read, test.work, test.compute, test.spins, test.period, length)
			a := divided(t, &events, gpu, length)
			turn := (test.read + test.work + test.compute).Seconds()
			all := (a.end.At - 100*ms).Seconds()
			for what, pair := range map[string][2]float64{
				"busy":    {a.totals.Busy.Seconds() / all, test.compute.Seconds() / turn},
				"storage": {a.totals.Storage.Seconds() / all, test.read.Seconds() / turn},
				"CPU":     {a.totals.CPU.Seconds() / all, test.work.Seconds() / turn},
			} {
				if math.Abs(pair[0]-pair[1]) > 0.03 {
					t.Errorf("%s: got %.1f %%, want %.1f %%", what, 100*pair[0], 100*pair[1])
				}
			}
		})
	}
}

// TestGPUBeginsWithinBlock ends the start of a program at the edge of a window, within the first block.
func TestGPUBeginsWithinBlock(t *testing.T) {
	for name, test := range map[string]struct {
		spins  bool
		period time.Duration
	}{
		"spins, samples each 20 ms":  {true, 20 * ms},
		"spins, samples each 167 ms": {true, 167 * ms},
		"sleeps":                     {false, 20 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			const start = 600 * ms
			events, gpu := loopAfter(start, 60*ms, 30*ms, 50*ms, test.spins, test.period, 4*time.Second)
			h := historyOf(t, gpu)
			a := newAccount(Target{Job: "job", GPU: "gpu", Leader: 1})
			a.schedule.timeline, a.schedule.names = chain.NewTimeline(), &names{}
			a.schedule.timeline.(*chain.Timeline).Learn(&events)
			a.schedule.lead(1)
			a.end.At = 100 * ms
			var busy [2]float64 // s, before and after the edge
			for at := 200 * ms; at <= 3*time.Second; at += 100 * ms {
				p, part := history.Point{At: at}, 0
				if at == start {
					p.Edge = &history.Edge{}
				}
				if at > start {
					part = 1
				}
				of, _ := a.scheduled(h, p)
				busy[part] += of.busy
				a.end.At = at
			}
			want := (3*time.Second - start).Seconds() * 50 / 140
			if busy[0] > 0.05 || math.Abs(busy[1]-want) > 0.1 {
				t.Errorf("got %.3f s busy before the edge and %.3f s after it, want 0 and %.3f", busy[0], busy[1], want)
			}
		})
	}
}

// TestLeaderEnds divides the time after the end of a rank by what the thread did that had created it.
func TestLeaderEnds(t *testing.T) {
	const ms = time.Millisecond
	events, gpu := loop(0, 50*ms, 50*ms, false, 20*ms, 2*time.Second)
	for i := range events.Events {
		events.Events[i].TID, events.Events[i].PID = 2, 2
	}
	events.Events[0].Creator = 1
	launcher := func(e sample.ThreadEvent) sample.ThreadEvent { e.TID, e.PID = 1, 1; return e }
	rank := sample.ThreadEvent{At: 2 * time.Second, TID: 2, PID: 2, Kind: sample.ThreadOut, State: sample.StateDead}
	events.Events = slices.Concat([]sample.ThreadEvent{
		launcher(sample.ThreadEvent{Kind: sample.ThreadBegan, Job: "job"}),
		launcher(sample.ThreadEvent{Kind: sample.ThreadOut, State: sample.StateAsleep, Syscall: 61}),
	}, slices.DeleteFunc(events.Events, func(e sample.ThreadEvent) bool { return e.At >= rank.At }), []sample.ThreadEvent{
		rank, launcher(sample.ThreadEvent{At: rank.At, Kind: sample.ThreadIn, Woken: rank.At, Waker: 2}),
	})
	events.Until = 4 * time.Second
	busy := gpu[len(gpu)-1].GPUs[0].Busy
	for at := gpu[len(gpu)-1].At.Mono + 20*ms; at < events.Until+500*ms; at += 20 * ms {
		gpu = append(gpu, sample.Sample{At: sample.Stamp{Mono: at}, GPUs: []sample.GPU{{ID: "gpu", Busy: busy}}})
	}
	h := historyOf(t, gpu)
	a := newAccount(Target{Job: "job", GPU: "gpu", Leader: 2})
	a.schedule.timeline, a.schedule.names = chain.NewTimeline(), &names{}
	a.schedule.timeline.(*chain.Timeline).Learn(&events)
	a.schedule.lead(2)
	var cpu, gain, dark float64 // s, after the end of the rank
	for at := 200 * ms; at <= events.Until; at += 100 * ms {
		a.end.At = at - 100*ms
		of, unknown := a.scheduled(h, history.Point{At: at})
		if a.end.At >= rank.At {
			cpu, gain, dark = cpu+of.cpu, gain+of.gain, dark+unknown
		}
	}
	if cpu < 1.9 || gain > 0.1 || dark > 0.1 {
		t.Errorf("got %.2f s of CPU, %.2f s to gain and %.2f s unknown after the rank, want 2, 0 and 0", cpu, gain, dark)
	}
}

func historyOf(t *testing.T, samples []sample.Sample) *history.History {
	t.Helper()
	h, err := history.New(history.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range samples {
		if err := h.Append(&samples[i]); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// TestStolenTimeIsIdle: the hypervisor steals from the work before each step of the GPU.
func TestStolenTimeIsIdle(t *testing.T) {
	s, gpu := loop(0, 60*ms, 40*ms, false, 20*ms, 20*time.Second)
	for i := range s.Events {
		if e := &s.Events[i]; e.Kind == sample.ThreadOut && e.State == sample.StateAsleep {
			e.Stolen = 15 * ms
		}
	}
	a := divided(t, &s, gpu, 20*time.Second)
	got := a.totals.Scheduled.Other[chain.ForSteal].Seconds() / a.totals.Scheduled.Time.Seconds()
	if math.Abs(got-0.15) > 0.02 {
		t.Errorf("got %.3f of the time stolen, want 0.15", got)
	}
	if name := a.schedule.names.waits(0, 20*time.Second, nil).Name(chain.ForSteal); name != "stolen by the hypervisor" {
		t.Errorf("got the name %q, want that of stolen time", name)
	}
}

// TestNamesOfAShortWindow: nothing is settled in the first seconds of a job, and yet a report says what it waited for.
func TestNamesOfAShortWindow(t *testing.T) {
	const length = 2 * time.Second
	s, gpu := loop(0, 60*ms, 40*ms, false, 20*ms, length)
	for i := range s.Events {
		if e := &s.Events[i]; e.Kind == sample.ThreadOut && e.State == sample.StateAsleep {
			e.Stolen = 15 * ms
		}
	}
	a := divided(t, &s, gpu, length)
	if name := a.schedule.names.waits(0, length, nil).Name(chain.ForSteal); name != "" {
		t.Fatalf("got the name %q of settled blocks, want none", name)
	}
	waits := a.schedule.names.waits(0, length, a.schedule.open(0, length))
	waits = slices.DeleteFunc(waits, func(w Wait) bool { return w.Kind != chain.ForSteal })
	if len(waits) != 1 || waits[0].Name != "stolen by the hypervisor" || math.Abs(waits[0].Time-0.3) > 0.04 {
		t.Errorf("got %+v, want 0.3 s that were stolen", waits)
	}
}
