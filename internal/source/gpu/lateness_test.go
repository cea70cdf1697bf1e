package gpu

import (
	"math"
	"testing"
	"testing/synctest"
	"time"
)

// phases is busy for 90 % of every first three seconds of five, and for 10 % of the others.
func phases(at time.Duration) time.Duration {
	const busy, all = 3 * time.Second, 5 * time.Second
	rounds, rest := int64(at/all), at%all
	per := func(d time.Duration, share float64) time.Duration { return time.Duration(share * float64(d)) }
	full := per(busy, 0.9) + per(all-busy, 0.1)
	return time.Duration(rounds*int64(full)) + per(min(rest, busy), 0.9) + per(max(0, rest-busy), 0.1)
}

// TestLateDriver: busy time is right to the period in windows of four seconds, however late the driver is.
func TestLateDriver(t *testing.T) {
	for _, c := range []struct {
		name        string
		late, batch time.Duration
		fresh       bool // the driver begins with the session, and has no samples from before
	}{
		{"at once", 0, 0, false},
		{"once a second", 0, time.Second, false},
		{"once a second, from the start", 0, time.Second, true},
		{"1.5 s late", 1500 * time.Millisecond, 0, false},
		{"3 s late", 3 * time.Second, 0, false},
		{"3 s late, from the start", 3 * time.Second, 0, true},
		{"every three seconds", 0, 3 * time.Second, false},
		{"3 s late, once a second", 3 * time.Second, time.Second, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			time.Sleep(time.Second) // the clock begins at 0, which stands for no time
			d := &fakeDriver{}
			g := d.gpu("a", 0)
			g.late, g.batch, g.busy = c.late, c.batch, phases
			began := g.began
			if !c.fresh {
				time.Sleep(7300 * time.Millisecond)
			}
			p := startRun(t.Context(), d)
			time.Sleep(60 * time.Second)
			p.stop()
			rows := p.take()
			checkRows(t, rows)
			origin := rows[0].At.Wall.Sub(began) - rows[0].At.Mono
			worst, skipped := 0.0, 60 // the first six seconds, in which the lag is learned
			if c.fresh {
				skipped = 5
			}
			for i := skipped; i+40 < len(rows); i++ {
				from, to := rows[i], rows[i+40]
				want := phases(origin+to.At.Mono) - phases(origin+from.At.Mono)
				got := to.GPUs[0].Busy - from.GPUs[0].Busy
				worst = max(worst, math.Abs((got-want).Seconds())/4)
			}
			if worst > 0.02 {
				t.Errorf("%s: got busy wrong by %.3f of a window of 4 s, want at most 0.02", c.name, worst)
			}
			if got := rows[len(rows)-1]; d.utilizationCalls() > 90 || got.GPUs[0].Period != g.period.Round(time.Millisecond) {
				t.Errorf("%s: got %d calls in 60 s, and a period of %v, want at most 90 and %v", c.name,
					d.utilizationCalls(), got.GPUs[0].Period, g.period)
			}
		})
	}
}
