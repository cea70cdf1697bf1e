package ledger

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/ledger/chain"
	"github.com/stallspan/stallspan/internal/sample"
)

// TestSampledLoop: the ledger of a loop from moments has the GPU's time exactly, and the rest except for chance.
func TestSampledLoop(t *testing.T) {
	const length, tick = 20 * time.Second, 100 * ms
	for name, test := range map[string]struct {
		read, work, compute time.Duration
		spins               bool
		period              time.Duration
	}{
		"sleeps, samples each 20 ms":   {60 * ms, 30 * ms, 50 * ms, false, 20 * ms},
		"spins, samples each 167 ms":   {60 * ms, 30 * ms, 50 * ms, true, 167 * ms},
		"sleeps, long steps":           {300 * ms, 100 * ms, 400 * ms, false, 167 * ms},
		"spins, long steps":            {300 * ms, 100 * ms, 400 * ms, true, 20 * ms},
		"spins, reads nothing":         {0, 30 * ms, 70 * ms, true, 167 * ms},
		"sleeps, the GPU is the limit": {5 * ms, 5 * ms, 90 * ms, false, 20 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			_, gpu := loop(test.read, test.work, test.compute, test.spins, test.period, length)
			turn := test.read + test.work + test.compute
			ran := func(until time.Duration) time.Duration { // since the begin
				rest := until % turn
				of := test.work
				if test.spins {
					of += test.compute
				}
				return time.Duration(int(until/turn)*int(of)) + min(of, max(0, rest-test.read))
			}
			r := rand.New(rand.NewPCG(1, 2))
			m := chain.NewMoments()
			next := time.Duration(0)
			for at := time.Duration(0); at < length; at += tick {
				w := sample.Watched{TID: 1, Job: "job", Drives: true, From: at, Counted: true, Ran: ran(at+tick) - ran(at)}
				for ; next < at+tick; next += time.Duration(min(4, r.ExpFloat64()) * 1e7) {
					one := sample.Moment{At: next}
					switch phase := next % turn; {
					case phase < test.read:
						one.State = sample.StateBlocked
					case phase >= test.read+test.work && !test.spins:
						one.In = sample.In{State: sample.StateAsleep, Syscall: 230}
					}
					w.Moments = append(w.Moments, one)
				}
				m.Learn(&sample.Moments{Until: at + tick, Arch: "amd64", Threads: []sample.Watched{w}})
			}
			a := newAccount(Target{Job: "job", GPU: "gpu", Leader: 1})
			a.moments.timeline, a.moments.names = m, &names{}
			a.moments.lead(1)
			a.moments.checkpoint()
			divideAll(t, a, historyOf(t, gpu), length-time.Second)
			all := (a.end.At - tick).Seconds()
			for what, pair := range map[string][3]float64{
				"busy":    {a.totals.Busy.Seconds() / all, test.compute.Seconds() / turn.Seconds(), 0.01},
				"storage": {a.totals.Storage.Seconds() / all, test.read.Seconds() / turn.Seconds(), 0.03},
				"CPU":     {a.totals.CPU.Seconds() / all, test.work.Seconds() / turn.Seconds(), 0.03},
			} {
				if math.Abs(pair[0]-pair[1]) > pair[2] {
					t.Errorf("%s: got %.1f %%, want %.1f %%", what, 100*pair[0], 100*pair[1])
				}
			}
			if s := a.totals.Scheduled; s.Sampled < s.Time || s.Moments < 1500 {
				t.Errorf("got %v from %d moments of %v, want all of it", s.Sampled, s.Moments, s.Time)
			}
		})
	}
}
