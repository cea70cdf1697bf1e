package chain

import (
	"slices"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// worked writes a training of python (thread 1) with two more threads of its process, 2 and 3, and processes 10 and 20.
// Nothing happens before 100 ms.
type worked struct{ script }

func (s *worked) begin(at float64, tid, pid, creator int, name string) {
	s.events = append(s.events, sample.ThreadEvent{At: ms(at), Kind: sample.ThreadBegan, TID: tid, PID: pid, Job: "job",
		Creator: creator, Name: name})
}

func training() *worked {
	s := &worked{}
	s.begin(0, 1, 1, 0, "python")
	s.begin(1, 20, 20, 1, "logger")
	s.begin(2, 10, 10, 1, "python")
	s.begin(3, 2, 1, 1, "python")
	s.begin(2000, 3, 1, 1, "python")
	return s
}

// wakes has one thread end a pause of another, which was so long.
func (s *worked) wakes(at float64, waker, woken int, pause float64, how sample.WakerKind) {
	s.out(at-pause, woken, futex)
	s.inFrom(how, at, at, woken, waker)
}

// handovers returns those of the first thread from 100 ms on.
func (s *worked) handovers(until float64) (at []float64, asks []bool) {
	slices.SortStableFunc(s.events, func(a, b sample.ThreadEvent) int { return int(a.At - b.At) })
	t := NewTimeline()
	first := slices.IndexFunc(s.events, func(e sample.ThreadEvent) bool { return e.At >= ms(100) })
	t.Learn(&sample.Schedule{Until: ms(100), Events: s.events[:first], Arch: "amd64"})
	h := t.Handovers(1)
	t.Learn(&sample.Schedule{Until: ms(until), Events: s.events[first:], Arch: "amd64"})
	all, since := h.Between(0, ms(until))
	if since != ms(100) {
		return nil, nil
	}
	for _, one := range all {
		if one.By != 0 && one.By != 10 {
			return nil, nil
		}
		at, asks = append(at, float64(one.At)/float64(time.Millisecond)), append(asks, one.Asks)
	}
	return at, asks
}

func TestHandovers(t *testing.T) {
	const thread, worker, logger, late = 2, 10, 20, 3
	tests := map[string]struct {
		write func(s *worked)
		at    []float64
		asks  []bool
	}{
		"a batch from a worker": {func(s *worked) {
			s.wakes(3000, worker, 1, 50, sample.UserThread)
		}, []float64{3000}, []bool{false}},
		"which also takes some more words": {func(s *worked) {
			s.wakes(3000, worker, 1, 50, sample.UserThread)
			s.wakes(3001, 1, worker, 10, sample.UserThread)
			s.wakes(3001.5, worker, 1, 0.2, sample.UserThread)
		}, []float64{3000}, []bool{false}},
		"asking a thread for the next one, which began with the worker": {func(s *worked) {
			s.wakes(3000, worker, 1, 50, sample.UserThread)
			s.wakes(3002, 1, thread, 40, sample.UserThread)
			s.wakes(3300, 1, thread, 290, sample.UserThread)
		}, []float64{3000, 3300}, []bool{true, true}},
		"a thread that works for the first one": {func(s *worked) {
			for at := 3000.0; at < 5000; at += 100 {
				s.wakes(at, 1, late, 50, sample.UserThread)
				s.wakes(at+50, late, 1, 50, sample.UserThread)
			}
		}, nil, nil},
		"the same, and it began with the worker: it counts once": {func(s *worked) {
			for at := 3000.0; at < 5000; at += 100 {
				s.wakes(at, 1, thread, 50, sample.UserThread)
				s.wakes(at+50, thread, 1, 50, sample.UserThread)
			}
		}, []float64{3000}, []bool{true}},
		"the same, and it reads": {func(s *worked) {
			s.on(2990, late)
			s.out(3000, late, sample.ThreadEvent{State: sample.StateAsleep, Syscall: sysFutex, Chars: 4096})
			s.inFrom(sample.UserThread, 3100, 3100, late, 1)
			s.wakes(3200, late, 1, 50, sample.UserThread)
		}, []float64{3100, 3200}, []bool{false, false}},
		"a process of another program": {func(s *worked) {
			s.wakes(3000, 1, logger, 500, sample.UserThread)
			s.wakes(3100, logger, 1, 50, sample.UserThread)
		}, nil, nil},
		"a request over TCP": {func(s *worked) {
			s.wakes(3000, worker, 1, 50, sample.SoftIRQ)
		}, nil, nil},
		"the global lock": {func(s *worked) {
			s.wakes(3000, worker, 1, 5, sample.UserThread)
		}, nil, nil},
	}
	for name, test := range tests {
		s := training()
		test.write(s)
		at, asks := s.handovers(6000)
		if !slices.Equal(at, test.at) || !slices.Equal(asks, test.asks) {
			t.Errorf("%s: got %v (asks: %v), want %v (%v)", name, at, asks, test.at, test.asks)
		}
	}
}

// TestTakes: the leading thread waits for a worker, even for a moment. A wait for a thread of its own process must be
// longer, as one for the global lock is short.
func TestTakes(t *testing.T) {
	const thread, worker = 2, 10
	s := training()
	s.wakes(3000, 1, worker, 50, sample.UserThread) // asks
	s.wakes(3300, 1, worker, 50, sample.UserThread)
	s.wakes(3301, worker, 1, 0.5, sample.UserThread) // and gets something at once
	s.wakes(3600, 1, thread, 50, sample.UserThread)
	s.wakes(3601, thread, 1, 0.5, sample.UserThread)
	s.wakes(3900, worker, 1, 50, sample.UserThread)
	slices.SortStableFunc(s.events, func(a, b sample.ThreadEvent) int { return int(a.At - b.At) })
	first := slices.IndexFunc(s.events, func(e sample.ThreadEvent) bool { return e.At >= ms(100) })
	tl := NewTimeline()
	tl.Learn(&sample.Schedule{Until: ms(100), Events: s.events[:first], Arch: "amd64"})
	h := tl.Handovers(1)
	tl.Learn(&sample.Schedule{Until: ms(5000), Events: s.events[first:], Arch: "amd64"})
	all, _ := h.Between(0, ms(5000))
	want := []Handover{{ms(3000), worker, false, false}, {ms(3300), worker, true, false}, {ms(3600), 0, false, true},
		{ms(3900), worker, true, false}}
	if !slices.Equal(all, want) {
		t.Errorf("got %v, want %v", all, want)
	}
}

func TestHandoversAreBounded(t *testing.T) {
	h := &Handovers{}
	const step = 100 * time.Millisecond
	for i := range 2 * maxHandovers {
		h.add(Handover{At: time.Duration(i) * step})
	}
	all, since := h.Between(0, 2*maxHandovers*step)
	n := len(all)
	if n > maxHandovers || n < maxHandovers/2 || since != all[0].At || all[n-1].At != (2*maxHandovers-1)*step {
		t.Errorf("%d handovers since %v, want the newest %d at most", len(all), since, maxHandovers)
	}
	some, _ := h.Between(all[3].At, all[7].At)
	if len(some) != 4 || some[0] != all[3] {
		t.Errorf("got %v of an interval with four", some)
	}
	if all, since := (*Handovers)(nil).Between(0, step); all != nil || since != step {
		t.Error("a thread that is not known has handovers")
	}
}

// BenchmarkHandovers takes over what is reported of a training: with the handovers of its leading thread, and without.
func BenchmarkHandovers(b *testing.B) {
	for name, kept := range map[string]bool{"kept": true, "not kept": false} {
		b.Run(name, func(b *testing.B) {
			s := training()
			t := NewTimeline()
			t.Learn(&sample.Schedule{Until: ms(2100), Events: s.events, Arch: "amd64"})
			if kept {
				t.Handovers(1)
			}
			events := 0
			for at := 3000.0; b.Loop(); at += 100 {
				s.events = s.events[:0]
				s.wakes(at, 10, 1, 50, sample.UserThread)
				s.on(at, 10)
				s.wakes(at+1, 1, 2, 90, sample.UserThread)
				for _, other := range []int{3, 20} {
					s.wakes(at+2, 1, other, 10, sample.UserThread)
				}
				events += len(s.events)
				t.Learn(&sample.Schedule{Until: ms(at + 10), Events: s.events, Arch: "amd64"})
				if events%1000 < 10 {
					t.Forget(ms(at - 1000))
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(events), "ns/event")
		})
	}
}
