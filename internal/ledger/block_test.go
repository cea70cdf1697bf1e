package ledger

import (
	"math"
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
	const ms = time.Millisecond
	s := sample.Schedule{Until: length, Arch: "amd64"}
	add := func(e sample.ThreadEvent) {
		e.TID, e.PID = 1, 1
		s.Events = append(s.Events, e)
	}
	add(sample.ThreadEvent{Kind: sample.ThreadBegan, Job: "job"})
	add(sample.ThreadEvent{Kind: sample.ThreadIn})
	var busy []time.Duration // when the GPU begins
	at := time.Duration(0)
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

func TestScheduledLoop(t *testing.T) {
	const ms = time.Millisecond
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
			h, err := history.New(history.Config{})
			if err != nil {
				t.Fatal(err)
			}
			for i := range gpu {
				if err := h.Append(&gpu[i]); err != nil {
					t.Fatal(err)
				}
			}
			timeline := chain.NewTimeline()
			timeline.Learn(&events)
			a := newAccount(Target{Job: "job", GPU: "gpu", Leader: 1})
			a.schedule.timeline = timeline
			a.schedule.lead(1)
			a.at = 100 * ms
			for at := 200 * ms; at < length-500*ms; at += 100 * ms {
				p := history.Point{At: at}
				of, dark := a.scheduled(h, p)
				if dark > 0 {
					t.Fatalf("at %v: got %v s without evidence, want none", at, dark)
				}
				a.totals.Busy += seconds(of.busy)
				a.totals.Storage += seconds(of.storage)
				a.totals.CPU += seconds(of.cpu)
				a.at = at
			}
			turn := (test.read + test.work + test.compute).Seconds()
			all := (a.at - 100*ms).Seconds()
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
