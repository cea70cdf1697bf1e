package ledger

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger/chain"
	"github.com/stallspan/stallspan/internal/sample"
)

// edge is where something changes: it holds on one side of a number, and not on the other.
type edge struct {
	at    float64
	holds func(x float64) bool
}

// of is x milliseconds.
func of(x float64) time.Duration { return time.Duration(x * float64(ms)) }

// TestThresholds has a case at the edge of each threshold. Times are in ms, counts lie between two numbers.
func TestThresholds(t *testing.T) {
	keep := func(h *history.History, s sample.Sample) {
		if err := h.Append(&s); err != nil {
			t.Fatal(err)
		}
	}
	cells := func(length float64) int { // of the last part of a stretch
		e := New(historyOf(t, nil))
		e.SetTargets([]Target{{Pressure: sample.HostScope}})
		e.close(history.Point{At: 100 * ms})
		if _, err := e.divide(history.Point{At: 100*ms + of(length)}); err != nil {
			t.Fatal(err)
		}
		return len(e.ends)
	}
	rarely := func(machine, job float64) bool { // read so far apart
		h := historyOf(t, nil)
		for i := 1.0; i <= 2; i++ {
			keep(h, sample.Sample{At: sample.Stamp{Mono: of(i * machine)}, Cores: []sample.Core{{Name: "cpu0"}}})
			keep(h, sample.Sample{At: sample.Stamp{Mono: of(i * job)}, Jobs: []sample.Job{{ID: "job"}}})
		}
		return (&Estimator{history: h, timeline: chain.NewTimeline()}).rarely()
	}
	training, _, _ := follow(t, 12*time.Second, time.Second)
	for name, e := range map[string]edge{
		"maxCell":    {150, func(length float64) bool { return cells(length) > 1 }},
		"maxBacklog": {60000, func(length float64) bool { return cells(length) > 1 }},
		"recallFine": {50000, func(before float64) bool { return recalls(of(before), ms) }},
		"recallCell": {950, func(after float64) bool { return recalls(time.Hour, of(after)) }},
		"MinHold":    {3000, func(length float64) bool { return Hold{To: of(length)}.long() }},
		"minBlock": {1000, func(length float64) bool {
			s := &schedule{timeline: chain.NewTimeline()}
			return s.blockOf([]history.Step{{End: of(length)}}) > 0
		}},
		"minSampled": {4000, func(length float64) bool {
			s := &schedule{timeline: chain.NewMoments()}
			return s.blockOf([]history.Step{{End: of(length)}}) > 0
		}},
		"minKnown": {3000, func(length float64) bool {
			s, end := &schedule{timeline: chain.NewTimeline()}, of(length)
			return s.foresee([]history.Step{{End: end / 2, Grown: 1}, {Start: end / 2, End: end, Grown: 1}})
		}},
		"patience": {2000, func(x float64) bool { // it sleeps from 0.1 to 10 s
			timeline := chain.NewTimeline()
			timeline.Learn(&sample.Schedule{Until: 10 * time.Second, Arch: "amd64", Events: []sample.ThreadEvent{
				{Kind: sample.ThreadBegan, TID: 1, PID: 1, Job: "job"}, {Kind: sample.ThreadIn, TID: 1, PID: 1},
				{At: 100 * ms, Kind: sample.ThreadOut, TID: 1, PID: 1, State: sample.StateAsleep, Syscall: 202},
			}})
			s := &schedule{timeline: timeline}
			s.lead(1)
			s.until(historyOf(t, nil), "", history.Point{At: 9900 * ms})
			return 10*time.Second-s.done < of(x)
		}},

		"collects":   {3000, func(length float64) bool { return training.collecting(training.at + of(length)) }},
		"readRarely": {500, func(apart float64) bool { return rarely(20, apart) }},
		"readRarer":  {2, func(times float64) bool { return rarely(1000, 1000*times) }},
		"maxSilence": {2000, func(silent float64) bool {
			h, now := historyOf(t, nil), 10*time.Second
			keep(h, sample.Sample{At: sample.Stamp{Mono: now - of(silent)}, Jobs: []sample.Job{{ID: "job"}}})
			keep(h, sample.Sample{At: sample.Stamp{Mono: now}, Cores: []sample.Core{{Name: "cpu0"}}})
			at, _ := newestCommon(h, sources[:])
			return at == now
		}},

		"minExpected": {0.1, func(expected float64) bool { // of 0.1 s in which the GPU is idle
			b := &block{}
			b.idle[waiting] = 1
			p := part{until: 100 * ms}
			p.time[fetching], p.time[waiting] = 0.1*(1-expected), 0.1*expected
			b.parts = []part{p}
			b.scale(steps(0), ofSleep)
			return b.parts[0].idle[fetching] > 0
		}},
		"minSlack": {0.005, func(x float64) bool { return slackAt(steps(0, 0), 0, 20*ms) < x }},
		"waitsMemory": {0.7, func(x float64) bool {
			w := gpuWaits{busy: 1}
			w.learn(&[classes]float64{}, 0, 0, 0)
			return w.busy < x
		}},
		"minOverlap": {0.15, func(share float64) bool { return (&gpuWaits{overlap: share, busy: 1}).queues() }},
		"minAsleep":  {0.5, func(share float64) bool { return (&gpuWaits{slept: share, busy: 1}).sleeps() }},

		"sharedIOTime": {1000, func(ago float64) bool {
			a := newAccount(Target{Job: "job"})
			a.lastIO, a.end.At = ms, ms
			return a.cell(historyOf(t, nil), history.Point{At: ms + of(ago)}).ownIO
		}},
		"maxLogBytes": {64 << 10, func(stored float64) bool { return levels{}.ownIO(levels{stored: stored}) }},
		"ownDisk": {0.5, func(share float64) bool {
			h := historyOf(t, nil)
			disk := sample.Disk{Name: "sda", Leaf: true, ReadIOs: 1}
			keep(h, sample.Sample{At: sample.Stamp{Mono: ms}, Disks: []sample.Disk{disk}})
			disk.ReadBytes, disk.TimeInQueue = uint64(1000*share), 500*ms
			keep(h, sample.Sample{At: sample.Stamp{Mono: time.Second}, Disks: []sample.Disk{disk}})
			return ownQueue(h, history.Point{At: ms}, history.Point{At: time.Second}, 1000) > 0
		}},

		"fading": {0.998, func(x float64) bool {
			n := &names{all: []named{{time: 1}}}
			n.learn(&block{}, 1, 0, time.Second)
			return n.all[0].time < x
		}},
		"looks": {0.01, func(share float64) bool {
			n, wait := names{}, time.Second
			look := time.Duration(share * float64(wait))
			for _, p := range []chain.Piece{{To: wait - look, Kind: chain.Other}, {From: wait - look, To: wait}} {
				n.extend(&p, chain.NewTimeline())
			}
			return n.hold.To == wait
		}},
		"mostly": {0.8, func(share float64) bool {
			list := Waits{{Reason: chain.Reason{Name: "a"}, Time: share}, {Reason: chain.Reason{Name: "b"}, Time: 1 - share}}
			return strings.Contains(list.Name(chain.ForGPU), "others")
		}},

		"minSteps": {6.5, func(n float64) bool { return hasSteps(int(math.Round(n)), time.Second, 1<<10) }},
		"minStay":  {2.5, func(n float64) bool { return hasSteps(96, time.Second, int(math.Round(n))) }},
		"minStep":  {40, func(length float64) bool { return hasSteps(100, of(length), 1<<10) }},
		"sureOfSteps": {0.81, func(covered float64) bool { // the rest is a pause in the middle
			l := &loops{Rand: rand.New(rand.NewPCG(1, 0))}
			l.steps(50, 300*ms, 0)
			l.at += of(30000 * (1/covered - 1))
			l.steps(50, 300*ms, 0)
			_, known := stepsOf(l.all, true)
			return known
		}},
		"agree": {0.2, func(more float64) bool {
			return confirms(each(50, of(100*(1+more))), each(200, 100*ms))
		}},
		"longestPattern": {8.5, func(n float64) bool {
			random, pattern := rand.New(rand.NewPCG(1, 0)), []float64(nil)
			for range int(math.Round(n)) {
				pattern = append(pattern, 200+200*random.Float64())
			}
			return alternates(60, pattern...)
		}},
		"minPattern":   {5.5, func(n float64) bool { return alternates(int(math.Round(n)), 200, 400) }},
		"alikeRounds":  {2, func(times float64) bool { return (&rounds{period: 100 * ms}).likes(of(100 * times)) }},
		"unlikeRounds": {0.1, func(share float64) bool { return alternates(12, 300, 300*(1+share)) }},
		"patternShare": {0.5, func(share float64) bool { return alternates(11, 300, 400, 300+100*share, 400+100*share) }},
		"oneBatch": {0.1667, func(share float64) bool { // each round has a handover after this part of it
			var times []time.Duration
			for _, at := range each(50, 100*ms) {
				times = append(times, at, at+of(100*share))
			}
			return len(roundsOf(times).all) > 60
		}},
		"pauses": {5.5, func(n float64) bool { // of 100 gaps
			gaps := slices.Repeat([]time.Duration{100 * ms}, 100)
			for i := range int(math.Round(n)) {
				gaps[i] = 100 * time.Second
			}
			return halfTime(gaps) > time.Second
		}},
		"fewRounds": {0.05, func(x float64) bool {
			r := roundsOf(each(10, 100*ms))
			return 1-r.confidence() < x
		}},
	} {
		if below, above := e.holds(0.9*e.at), e.holds(1.1*e.at); below == above {
			t.Errorf("%s: got %v below and above %g, want a change", name, below, e.at)
		}
	}
}

// each returns n moments that are so far apart.
func each(n int, apart time.Duration) (times []time.Duration) {
	for i := range n {
		times = append(times, time.Duration(i)*apart)
	}
	return times
}

// hasSteps reports whether steps are found in n rounds, in which a worker takes part in so many each.
func hasSteps(n int, length time.Duration, stays int) bool {
	var all []chain.Handover
	for i, at := range each(n, length) {
		all = append(all, chain.Handover{At: at, Takes: true, By: int32(1 + i/stays)})
	}
	_, known := stepsOf(all, true)
	return known
}

// alternates reports whether n rounds alternate that repeat a pattern of lengths in ms.
func alternates(n int, pattern ...float64) bool {
	r := &rounds{period: 300 * ms}
	for i := range n {
		r.all = append(r.all, of(pattern[i%len(pattern)]))
	}
	return r.alternate()
}
