package probe

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/readers"
)

// The readers of a load are known only if there were scans at both of its ends.
func TestReaders(t *testing.T) {
	const second, ms = time.Second, time.Millisecond
	done := make(chan struct{})
	close(done)
	look := func(began, ended time.Duration, bytes uint64) *scan {
		return &scan{began: began, ended: ended, done: done, totals: readers.Totals{1: {Bytes: bytes}}}
	}
	for name, c := range map[string]struct {
		from, to           time.Duration // of the load; the present moment is 0
		began, ended       time.Duration // of the look at its beginning
		endBegan, endEnded time.Duration // and at its end
		want               bool
	}{
		"at both ends":                           {-2 * second, 0, -2 * second, -2*second + 50*ms, 0, 50 * ms, true},
		"half a second before the load":          {-2 * second, 0, -2500 * ms, -2450 * ms, 0, 0, false},
		"and of a long one":                      {-20 * second, 0, -20500 * ms, -20450 * ms, 0, 0, true},
		"half a second before its end":           {-2 * second, 0, -2 * second, -2 * second, -500 * ms, -450 * ms, false},
		"a short one":                            {-300 * ms, 0, -320 * ms, -310 * ms, -50 * ms, 10 * ms, true},
		"a little at each, and together too far": {-300 * ms, 0, -360 * ms, -300 * ms, -60 * ms, 0, false},
		"one that took long":                     {-2 * second, 0, -2 * second, -1700 * ms, 0, 0, false},
	} {
		p := New("", nil, nil, nil)
		now := sample.Now().Mono
		p.scans.open = map[string]openLoad{"w": {look(now+c.began, now+c.ended, 5), now + c.from}}
		p.scans.last = look(now+c.endBegan, now+c.endEnded, 7)
		list := p.Readers("w", now+c.to)
		if got := len(list) == 1 && list[0].PID == 1 && list[0].Bytes == 2; got != c.want || !c.want && list != nil {
			t.Errorf("%s: got %+v, want readers: %v", name, list, c.want)
		}
		p.Stop()
	}
}
