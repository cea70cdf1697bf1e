package ledger

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger/chain"
	"github.com/stallspan/stallspan/internal/sample"
)

// loops writes handovers, with a generator that is the same in each run.
type loops struct {
	all []chain.Handover
	at  time.Duration
	*rand.Rand
}

// steps adds n rounds of about a length. Each has a few handovers within 20 ms.
func (l *loops) steps(n int, length time.Duration, jitter float64) {
	for range n {
		l.all = append(l.all, chain.Handover{At: l.at, Takes: true}, chain.Handover{At: l.at + 10*ms, Asks: true},
			chain.Handover{At: l.at + 20*ms})
		l.at += time.Duration(float64(length) * (1 + jitter*l.NormFloat64()))
	}
}

func TestStepsOf(t *testing.T) {
	random := func(l *loops) {
		for range 60 {
			l.all = append(l.all, chain.Handover{At: l.at})
			l.at += time.Duration(l.ExpFloat64() * float64(400*ms))
		}
	}
	tests := map[string]struct {
		write  func(l *loops)
		period time.Duration // 0: nothing is known
		count  int
	}{
		"a training":             {func(l *loops) { l.steps(50, 300*ms, 0.03) }, 300 * ms, 49},
		"whose steps differ":     {func(l *loops) { l.steps(200, 300*ms, 0.2) }, 300 * ms, 199},
		"more than are compared": {func(l *loops) { l.steps(1300, 300*ms, 0.1) }, 300 * ms, 1299},
		"long ones":              {func(l *loops) { l.steps(8, 10*time.Second, 0.03) }, 10 * time.Second, 7},
		"too few":                {func(l *loops) { l.steps(5, 10*time.Second, 0.03) }, 0, 0},
		"too short":              {func(l *loops) { l.steps(500, 35*ms, 0.03) }, 0, 0},
		"nothing":                {func(*loops) {}, 0, 0},
		"a checkpoint":           {func(l *loops) { l.steps(30, 300*ms, 0.03); l.at += 2 * time.Second; l.steps(30, 300*ms, 0.03) }, 300 * ms, 58},
		"random":                 {random, 0, 0},
		"what happened before":   {func(l *loops) { l.steps(1, 20*time.Second, 0); l.steps(50, 300*ms, 0.03) }, 300 * ms, 49},
		"validation at the end, which is faster": {func(l *loops) {
			l.steps(40, 300*ms, 0.03)
			l.steps(30, 100*ms, 0.03)
		}, 300 * ms, 40},
		"validation now and then": {func(l *loops) {
			for range 4 {
				l.steps(20, 300*ms, 0.03)
				l.steps(8, 100*ms, 0.03)
			}
		}, 300 * ms, 80},
		"rounds that take turns: one or two steps": {func(l *loops) {
			for range 30 {
				l.steps(1, 400*ms, 0.03)
				l.steps(1, 250*ms, 0.03)
			}
		}, 0, 0},
		"a process for each round": {func(l *loops) {
			l.steps(40, 300*ms, 0.03)
			for i := range l.all {
				l.all[i].By, l.all[i].Asks = int32(i/3)+1, false
			}
		}, 0, 0},
		"a process that logs": {func(l *loops) {
			l.steps(40, 300*ms, 0.03)
			for i := range l.all[:3*39] {
				l.all[i].Takes = false
			}
		}, 0, 0},
		"four workers": {func(l *loops) {
			l.steps(40, 300*ms, 0.03)
			for i := range l.all {
				l.all[i].By = int32(i/3%4) + 1
			}
		}, 300 * ms, 39},
		"three unlike rounds": {func(l *loops) {
			for range 30 {
				l.steps(1, 400*ms, 0.03)
				l.steps(1, 250*ms, 0.03)
				l.steps(1, 320*ms, 0.03)
			}
		}, 0, 0},
		"requests at half of the rate of batches": {func(l *loops) {
			l.steps(60, 300*ms, 0.03)
			for i := range l.all {
				l.all[i].Asks = l.all[i].Asks && i%2 == 0
			}
		}, 0, 0},
	}
	for name, test := range tests {
		for seed := range uint64(20) {
			l := &loops{at: time.Minute, Rand: rand.New(rand.NewPCG(seed, 0))}
			test.write(l)
			got, known := stepsOf(l.all, true)
			if !known {
				got = Steps{}
			}
			off := (got.Period - test.period).Abs()
			if off > test.period/20 || got.Count > test.count || got.Count < test.count*9/10 {
				t.Errorf("%s, seed %d: got %d of %v (%.2f), want %d of %v", name, seed, got.Count, got.Period, got.Confidence,
					test.count, test.period)
			}
			if part, _ := stepsOf(l.all, false); part.Count != 0 {
				t.Errorf("%s: %d steps in an interval that is known in part", name, part.Count)
			}
		}
	}
}

// BenchmarkSteps finds the steps among as many handovers as are kept.
func BenchmarkSteps(b *testing.B) {
	l := &loops{Rand: rand.New(rand.NewPCG(1, 0))}
	l.steps(4096/3, 300*ms, 0.1)
	b.ReportAllocs()
	for b.Loop() {
		if _, known := stepsOf(l.all, true); !known {
			b.Fatal("no steps")
		}
	}
}

// TestStepsOfATarget: the scheduler reports a training whose batches come from a worker process.
func TestStepsOfATarget(t *testing.T) {
	h, err := history.New(history.Config{})
	if err != nil {
		t.Fatal(err)
	}
	e := New(h)
	e.SetTargets([]Target{{Job: "job", Leader: 1}})
	began := func(tid, creator int) sample.ThreadEvent {
		return sample.ThreadEvent{Kind: sample.ThreadBegan, TID: tid, PID: tid, Job: "job", Creator: creator, Name: "python"}
	}
	e.Learn(&sample.Schedule{Until: 50 * ms, Events: []sample.ThreadEvent{began(1, 0), began(10, 1)}})
	const step, steps = 400 * ms, 50
	for n := range steps {
		at := time.Duration(n+1) * step
		e.Learn(&sample.Schedule{Until: at + ms, Events: []sample.ThreadEvent{
			{At: at - 100*ms, Kind: sample.ThreadOut, TID: 1, PID: 1, State: sample.StateAsleep, Syscall: 7},
			{At: at, Kind: sample.ThreadIn, TID: 1, PID: 1, Woken: at, Waker: 10, WakerPID: 10, WakerKind: sample.UserThread},
		}})
	}
	end := time.Duration(steps+1) * step
	got, known := e.Steps(ID("job", ""), 100*ms, end)
	if !known || got.Period != step || got.Count != steps-1 || got.Confidence < 0.95 {
		t.Errorf("got %+v, %v, want %d steps of %v", got, known, steps-1, step)
	}
	if got, known := e.Steps(ID("job", ""), 0, end); !known || got.Period != step || got.Count != 0 {
		t.Errorf("got %+v, %v of an interval that began before its job was followed, want no number", got, known)
	}
	if got, known := e.Steps(ID("job", ""), 100*ms, 3*step); known {
		t.Errorf("got %+v of two steps", got)
	}
	if got, known := e.Steps(ID("other", ""), 100*ms, end); known {
		t.Errorf("got %+v of a job that is not known", got)
	}
}

// trainings are programs of one job that a launcher begins one after another, as the scheduler reports them.
type trainings struct {
	*testing.T
	*Estimator
	at time.Duration // until which it has reported
}

// newTrainings begins the launcher, which is thread 1, and leads the job.
func newTrainings(t *testing.T) *trainings {
	t.Helper()
	h, err := history.New(history.Config{})
	if err != nil {
		t.Fatal(err)
	}
	r := &trainings{T: t, Estimator: New(h)}
	r.lead(1)
	r.report(50*ms, 0, r.began(1, 0))
	return r
}

func (r *trainings) began(tid, creator int) sample.ThreadEvent {
	return sample.ThreadEvent{
		At: r.at, Kind: sample.ThreadBegan, TID: tid, PID: tid, Job: "job", Creator: creator, Name: "python",
	}
}

// lead makes a thread the leader by the readings of the job.
func (r *trainings) lead(tid int) { r.SetTargets([]Target{{Job: "job", Leader: tid}}) }

// report hands over events of the time up to a moment. Others may be lost.
func (r *trainings) report(until time.Duration, lost uint64, events ...sample.ThreadEvent) {
	r.Learn(&sample.Schedule{Until: until, Lost: lost, Events: events})
	r.at = until
}

// train begins a training with a worker, and leads it for some steps.
func (r *trainings) train(tid, steps int, step time.Duration) {
	r.report(r.at+ms, 0, r.began(tid, 1), r.began(tid+1, tid))
	r.lead(tid)
	r.steps(tid, steps, step, 0)
}

// steps takes batches of a worker. Events of each step may be lost.
func (r *trainings) steps(tid, steps int, step time.Duration, lost uint64) {
	for range steps {
		at := r.at + step
		r.report(at, lost,
			sample.ThreadEvent{At: at - 100*ms, Kind: sample.ThreadOut, TID: tid, PID: tid, State: sample.StateAsleep,
				Syscall: 7},
			sample.ThreadEvent{At: at - ms, Kind: sample.ThreadIn, TID: tid, PID: tid, Woken: at - ms, Waker: tid + 1,
				WakerPID: tid + 1, WakerKind: sample.UserThread})
	}
}

// exit ends a training. Time is divided beyond its end.
func (r *trainings) exit(tid int) {
	for _, one := range []int{tid + 1, tid} {
		r.report(r.at+ms, 0,
			sample.ThreadEvent{At: r.at, Kind: sample.ThreadOut, TID: one, PID: one, State: sample.StateDead})
	}
	for range 3 {
		r.report(r.at+time.Second, 0)
		for _, a := range r.accounts {
			a.scheduled(r.history, history.Point{At: r.at})
			a.end.At = r.at
		}
	}
}

// want checks the steps from a moment until now.
func (r *trainings) want(what string, from, period time.Duration, count int) {
	r.Helper()
	got, known := r.Steps(ID("job", ""), from, r.at)
	if known != (period > 0) || known && (got.Period != period || got.Count != count) {
		r.Errorf("%s: got %+v, %v, want %d steps of %v", what, got, known, count, period)
	}
}

// TestStepsAfterTheTraining: a report may be made after the leading program has ended, when its launcher leads.
func TestStepsAfterTheTraining(t *testing.T) {
	const step = 400 * ms
	r := newTrainings(t)
	first := r.at + 5*ms
	r.train(10, 50, step)
	r.want("before the end", first, step, 49)
	r.exit(10)
	r.want("once its launcher is followed", first, step, 49)
	r.lead(1)
	r.want("once its launcher leads", first, step, 49)
	for i := range 4 { // programs without workers, such as commands of a script
		r.report(r.at+ms, 0, r.began(20+i, 1))
		r.lead(20 + i)
	}
	r.want("after other programs", first, step, 49)
	second := r.at + 5*ms
	r.train(30, 20, step/2)
	r.exit(30)
	r.want("of a second training", second, step/2, 19)
	r.want("of what follows it", r.at-2*time.Second, 0, 0)
	r.want("of a script that ran both", first, step, 49)
	for i := range maxLed {
		r.train(40+2*i, minSteps+1, step)
		r.exit(40 + 2*i)
	}
	if kept := len(r.accounts[0].schedule.led); kept != maxLed {
		t.Errorf("got handovers of %d threads that led, want %d", kept, maxLed)
	}
	r.want("after more than are kept", first, step, 0)
}

// TestStepsOfTheThreadThatLed: a thread that led before may do something else with workers.
func TestStepsOfTheThreadThatLed(t *testing.T) {
	const step = 400 * ms
	r := newTrainings(t)
	r.train(10, 50, step)
	r.report(r.at+ms, 0, r.began(20, 1), r.began(21, 20))
	r.lead(20)
	second := r.at
	r.steps(10, 50, step/2, 0)
	r.want("while another thread leads", second, 0, 0)
	r.steps(20, 10, step, 0)
	r.want("while it leads", second, step, 9)
}

// TestStepsWithLostEvents: handovers may be among the events that were lost, so the steps are not counted.
func TestStepsWithLostEvents(t *testing.T) {
	const step = 400 * ms
	r := newTrainings(t)
	first := r.at + 5*ms
	r.train(10, 50, step)
	r.want("before", first, step, 49)
	r.steps(10, 6, step, 2)
	middle := r.at
	r.steps(10, 44, step, 0)
	r.want("in between", first, step, 0)
	r.want("after it", middle, step, 43)
	r.want("later than a part", middle-time.Millisecond, step, 0)
}
