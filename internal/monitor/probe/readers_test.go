package probe

import (
	"strconv"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// A load learns who moved most since the last load of its path, and of no other path.
func TestMoversSinceTheLastLoad(t *testing.T) {
	const second = time.Second
	done := make(chan struct{})
	close(done)
	look := func(began time.Duration, read, written uint64) *scan {
		return &scan{began: began, ended: began, done: done, totals: readTotals{1: {Bytes: read, Written: written}}}
	}
	for path, want := range map[string]uint64{"/m": 60, "/other": 0} {
		p := New("", nil, nil, nil)
		now := sample.Now().Mono
		p.scans.keep(pastLoad{place{path: "/m"}, look(now-60*second, 5, 0), 1 << 20, sample.PageCache{}})
		w := &window.Window{ID: "w", Kind: window.ModelLoad, Path: path}
		w.Start.Mono = now - 2*second
		p.scans.last = look(now-10*time.Millisecond, 25, 40) // young enough for the begin to use it
		p.WatchReaders(w)
		opened := p.scans.open["w"]
		opened.scan = look(now-2*second, 25, 40)
		p.scans.open["w"] = opened
		p.scans.last = look(now, 30, 41)
		var got uint64
		for _, r := range p.Readers("w", now) {
			if r.Before {
				got += r.Bytes
			}
		}
		if got != want {
			t.Errorf("%s: got %d bytes since the last load, want %d", path, got, want)
		}
		p.Stop()
	}
}

func TestPastLoadsAreBounded(t *testing.T) {
	var s scans
	for i := range uint64(100) {
		s.keep(pastLoad{place{path: strconv.FormatUint(i, 10)}, nil, i, sample.PageCache{}})
	}
	s.keep(pastLoad{place{path: "99"}, nil, 7, sample.PageCache{}})
	if len(s.ended) != maxEnded {
		t.Errorf("got %d loads, want %d", len(s.ended), maxEnded)
	}
	if last, ok := s.past(place{path: "99"}); !ok || last.cached != 7 {
		t.Errorf("got %+v, %v; want the newest load of its path", last, ok)
	}
	if _, ok := s.past(place{path: "0"}); ok {
		t.Error("the oldest load is still there")
	}
}

// The readers of a load are known only if there were scans at both of its ends.
func TestReaders(t *testing.T) {
	const second, ms = time.Second, time.Millisecond
	done := make(chan struct{})
	close(done)
	look := func(began, ended time.Duration, bytes uint64) *scan {
		return &scan{began: began, ended: ended, done: done, totals: readTotals{1: {Bytes: bytes}}}
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
		p.scans.open = map[string]openLoad{"w": {scan: look(now+c.began, now+c.ended, 5), at: now + c.from}}
		p.scans.last = look(now+c.endBegan, now+c.endEnded, 7)
		list := p.Readers("w", now+c.to)
		if got := len(list) == 1 && list[0].PID == 1 && list[0].Bytes == 2; got != c.want || !c.want && list != nil {
			t.Errorf("%s: got %+v, want readers: %v", name, list, c.want)
		}
		p.Stop()
	}
}
