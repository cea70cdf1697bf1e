package chain

import (
	"math"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// edge is where something changes: it holds on one side of a number, and not on the other.
type edge struct {
	at    float64
	holds func(x float64) bool
}

// TestThresholds has a case at the edge of each threshold. Times are in ms, counts lie between two numbers.
func TestThresholds(t *testing.T) {
	for name, e := range map[string]edge{
		"longSleep": {1000, func(pause float64) bool { return attendsAfter(1, pause, 0.5, nap) }},
		"minLooks":  {2.5, func(n float64) bool { return attendsAfter(n, 100, 0.5, nap) }},
		"minPolls":  {1.5, func(n float64) bool { return attendsAfter(n, 100, 0.5, poll) }},
		"lookShare": {0.05, func(share float64) bool { return attendsAfter(4, 600, 600*share, nap) }},
		"maxLook":   {1, func(look float64) bool { return attendsAfter(4, 10, look, nap) }},
		"fewWork": {100, func(work float64) bool {
			s := launcher(3000, 3000, 1, child, 10)
			s.began(1, 100, 10)
			s.on(1, 100)
			s.out(1+work, 100, nap)
			return waitsForStorage(s.timeline(900+work), 10, 10+work, 900+work)
		}},

		"minCut":   {100, func(sleep float64) bool { return killed(sleep, 1) }},
		"exitTime": {1000, func(exit float64) bool { return killed(500, exit) }},
		"joinPatience": {1000, func(sleep float64) bool {
			s := joining(10+sleep, func(s *script) {
				s.began(0, 4, 1)
				s.events[len(s.events)-1].PID = 1
				s.on(0, 4)
				s.out(1, 1, futex)
				s.in(2, 2, 1, 4)
				s.out(3, 4, nap)
			})
			return waitsForStorage(s.timeline(10+sleep), 1, 10, 10+sleep)
		}},
		"recently": {600, func(ago float64) bool { // a thread worked before, another one reads for 400 ms
			s := threads(3)
			s.out(10, 1, futex)
			s.out(20, 3, nap)
			s.in(3600, 3600, 3, 0)
			s.out(3600, 3, disk)
			s.out(4000-ago, 2, nap)
			return waitsForStorage(s.timeline(4000), 1, 3700, 4000)
		}},
		"standInSlice": {25, func(works float64) bool { // one thread works and then another one reads
			s := threads(3)
			s.out(0, 1, futex)
			s.out(0, 3, nap)
			s.in(works, works, 3, 0)
			s.out(works, 3, disk)
			s.out(works, 2, nap)
			s.in(100, 100, 1, 99)
			work, _, _, _, _ := shares(s.timeline(100).Walk(1, 0, ms(100), nil))
			return work > 0
		}},
		"pollingNaps":  {2.5, func(n float64) bool { return stoodInFor(math.Round(n), 40) }},
		"pollingShare": {0.5, func(share float64) bool { return stoodInFor(5, 50*share) }},
		"muchLess": {33.3, func(did float64) bool {
			s := threads(2)
			s.out(100, 1, futex)
			s.in(110, 110, 1, 2)
			s.out(110+did, 1, futex)
			s.in(200, 200, 1, 2)
			return len(s.timeline(200).Sleeps(1, 0, ms(200))) == 2
		}},
		"maxRunning": {1000, func(length float64) bool {
			s := &script{}
			s.began(0, 1, 0)
			s.out(length, 1, nap)
			_, _, _, _, unknown := shares(s.timeline(length).Walk(1, 0, ms(length), nil))
			return unknown > 0
		}},

		"maxUnproved": {100, func(work float64) bool {
			s := threads(2)
			s.out(0, 1, futex)
			s.out(work, 2, preempt)
			s.on(work+0.1, 2)
			s.in(work+0.1, work+0.1, 1, 2)
			return s.timeline(work+0.1).TimesAt(1).Work < ms(work-1)
		}},
		"minSlice": {0.7, func(length float64) bool { return servesStorage(1, length) }},
		"inFlight": {10, func(after float64) bool { return servesStorage(after, 0.5) }},
		"stealMemory": {0.0417, func(x float64) bool { // 2 s are stolen of 16 s, then none of 20 s
			s := &steal{}
			s.split(2*time.Second, 8*time.Second, false)
			s.split(0, 8*time.Second, false)
			s.split(0, 20*time.Second, false)
			usual, _ := s.split(time.Second, time.Second, true)
			return usual.Seconds() < x
		}},
		"coldPause": {1, func(pause float64) bool {
			s := threads(1)
			s.out(20, 1, disk)
			s.in(20+pause, 20+pause, 1, 0)
			s.out(40+pause, 1, nap)
			return s.timeline(40+pause).TimesAt(1).Memory < ms(39.5)
		}},

		"recentTime": {0.5, func(x float64) bool {
			th := &thread{}
			th.learnFetching(ms(10), ms(10))
			return th.fetching < x
		}},
		"kernelMemory": {0.5, func(x float64) bool {
			var k kernelShare
			k.fetching(&sample.Watched{Ran: 4 * time.Second, System: 4 * time.Second, Fetched: 1e8}, true)
			return k.fetching(&sample.Watched{Ran: 2 * time.Second, Fetched: 1e8}, true) < x
		}},
		"kernelGuess": {0.25, func(x float64) bool {
			return (&kernelShare{}).fetching(&sample.Watched{Ran: ms(40), Fetched: 1e6}, true) < x
		}},
		"copyCost": {0.2, func(x float64) bool { return allSystem-inKernel(1e9, 1e9) < x }},
		"mapCost":  {0.03, func(x float64) bool { return allSystem-inKernel(1e9, 0) < x }},
		"maxFetch": {0.05, func(x float64) bool { return inKernel(1e6, 0) < x }},
		"mostlyCached": {8, func(x float64) bool {
			s := &sample.Watched{Ran: time.Second, System: time.Second, Fetched: 1000, Chars: uint64(1000 * x)}
			return (&kernelShare{}).fetching(s, false) > 0
		}},
		"fetchShare": {0.5, func(x float64) bool {
			p, _ := NewMoments().doingOf(&sample.Other{System: 1, Reads: true, Weight: 1})
			return p.Fetch < x
		}},

		"maxAhead": {50, func(x float64) bool { // 300 ms are counted in 100 ms
			m := NewMoments()
			for at, ran := range []time.Duration{ms(300), 0} {
				from := time.Duration(at) * ms(100)
				asleep := asleepIn(sysSleep, sample.NoFile)
				asleep.At = from + ms(50)
				m.Learn(&sample.Moments{Until: from + ms(100), Arch: "amd64", Threads: []sample.Watched{{
					TID: leader, From: from, Counted: true, Ran: ran, Moments: []sample.Moment{asleep}, Drives: true,
				}}})
			}
			work, _, _, _, _ := shares(m.Walk(leader, ms(100), ms(200), nil))
			return work < x
		}},
		"slack": {1, func(late float64) bool { return threads(1).timeline(100).Covers(1, 0, ms(100+late)) }},
		"frameTime": {1000, func(length float64) bool {
			w := newWatched(0)
			w.close(ms(length))
			return w.frame.from > 0
		}},
		"feeds": {0.05, func(share float64) bool {
			f := frame{all: 1, fedStorage: share, running: 1 - share}
			return f.times(&lead{}).Workers < time.Second
		}},

		"MinPause": {8, func(pause float64) bool {
			s := training()
			s.wakes(3000, 10, 1, pause, sample.UserThread)
			at, _ := s.handovers(4000)
			return len(at) > 0
		}},
		"startsFor": {1000, func(after float64) bool {
			s := training()
			s.begin(2+after, 4, 1, 1, "python")
			return lastCounts(s, 4, 2, 10)
		}},
		"passingTime": {5.55, func(work float64) bool { return lastCounts(training(), 2, 10, work) }},
		"maxGiven": {9.5, func(n float64) bool {
			s := training()
			for i := range 3 {
				s.wakes(3000+100*float64(i), 2, 1, 50, sample.UserThread)
			}
			return lastCounts(s, 2, int(math.Round(n)), 1)
		}},
		"asksFor": {30000, func(after float64) bool {
			s := training()
			s.on(2990, 3)
			s.out(3000, 3, sample.ThreadEvent{State: sample.StateAsleep, Syscall: sysFutex, Chars: 4096})
			s.wakes(3000+after, 3, 1, 50, sample.UserThread)
			at, _ := s.handovers(40000)
			return len(at) > 0
		}},
	} {
		if below, above := e.holds(0.9*e.at), e.holds(1.1*e.at); below == above {
			t.Errorf("%s: got %v below and above %g, want a change", name, below, e.at)
		}
	}
}

// threads has threads of one process that run. The first one has begun the others.
func threads(n int) *script {
	s := &script{}
	s.began(0, 1, 0)
	s.on(0, 1)
	for tid := 2; tid <= n; tid++ {
		s.began(0, tid, 1)
		s.events[len(s.events)-1].PID = 1
		s.on(0, tid)
	}
	return s
}

func waitsForStorage(t *Timeline, tid int, from, to float64) bool {
	_, _, storage, _, _ := shares(t.Walk(tid, ms(from), ms(to), nil))
	return storage > 0
}

// attendsAfter reports whether a launcher attends another program after so many sleeps.
func attendsAfter(n, pause, look float64, sleep sample.ThreadEvent) bool {
	end := math.Round(n) * (pause + look)
	return waitsForStorage(launcher(end+look+5, pause, look, sleep, 10).timeline(end+look+5), 10, 0, end)
}

// killed reports whether a sleep that a signal ends counts as waiting for another program.
func killed(sleep, exit float64) bool {
	s := &script{}
	s.began(0, 1, 0)
	s.on(0, 1)
	s.began(5, 2, 1)
	s.on(5, 2)
	s.out(10, 1, pipe)
	s.in(10+sleep, 10+sleep, 1, 99)
	s.out(10+sleep+exit, 1, died)
	work, _, _, _, _ := shares(s.timeline(20+sleep+exit).Walk(1, ms(10), ms(10+sleep), nil))
	return work > sleep/2
}

// stoodInFor reports whether a thread that reads stands in for one that ends a sleep of 50 ms, and slept in it, too.
func stoodInFor(naps, slept float64) bool {
	s := threads(3)
	s.out(0, 1, futex)
	s.out(0, 2, disk)
	for at := 0.0; at < 49; at += 50 / naps {
		s.out(at, 3, nap)
		s.in(at+slept/naps, at+slept/naps, 3, 0)
	}
	s.in(50, 50, 1, 3)
	return waitsForStorage(s.timeline(50), 1, 0, 50)
}

// servesStorage reports whether what takes a CPU for a time may serve storage, so long after a request.
func servesStorage(after, length float64) bool {
	s := threads(1)
	s.out(5, 1, sample.ThreadEvent{State: sample.StateReady, Fetched: 4096})
	s.on(5, 1)
	s.out(5+after, 1, preempt)
	s.on(5+after+length, 1)
	of := s.timeline(30).TimesAt(1)
	return of.Pending > of.Memory
}

// inKernel is the share of its running time in which a thread fetched data that ran for a second, all of it in the
// kernel.
func inKernel(fetched, chars uint64) float64 {
	s := &sample.Watched{Ran: time.Second, System: time.Second, Fetched: fetched, Chars: chars}
	return (&kernelShare{}).fetching(s, true)
}

const allSystem = 1.02 / 1.04 // a thread's share without the costs of copying and mapping

// lastCounts reports whether the last of some times is a handover at which the first thread asks another one, which
// works so long in between.
func lastCounts(s *worked, tid, n int, work float64) bool {
	last := 0.0
	for i := range n {
		last = 4000 + 100*float64(i)
		s.wakes(last, 1, tid, 100-work, sample.UserThread)
	}
	at, _ := s.handovers(6000)
	return len(at) > 0 && at[len(at)-1] == last
}
