package ledger

import (
	"iter"
	"math"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/ledger/chain"
)

// Steps are the rounds of a training's loop: each takes a batch of data.
type Steps struct {
	Period     time.Duration // median
	Count      int           // 0 if not all of the interval is known
	Confidence float64       // 0 to 1
}

// maxCompared bounds how many handovers are looked at: the newest.
const maxCompared = 1024

// stepsOf finds the steps between handovers of the leading thread with those that bring its data.
func stepsOf(handovers []chain.Handover, complete bool) (Steps, bool) {
	times, requests := make([]time.Duration, 0, len(handovers)), []time.Duration(nil)
	for _, h := range handovers {
		times = append(times, h.At)
		if h.Asks {
			requests = append(requests, h.At)
		}
	}
	newest := times[max(0, len(times)-maxCompared):]
	all := roundsOf(newest)
	s := Steps{Period: all.period, Confidence: all.confidence()}
	if complete {
		s.Count = all.count(times)
	}
	requests = requests[max(0, len(requests)-maxCompared):]
	return s, s.Confidence >= sureOfSteps && s.Period >= minStep && confirms(requests, times) &&
		takes(handovers, s.Period) && stay(handovers[max(0, len(handovers)-maxCompared):], s.Period)
}

// takes reports whether the thread gets something from the others before the last round. It gets the first batch at
// least from workers. A process that logs gives nothing back until it ends.
func takes(handovers []chain.Handover, period time.Duration) bool {
	end := handovers[len(handovers)-1].At - period
	return slices.ContainsFunc(handovers, func(h chain.Handover) bool { return h.Takes && h.At < end })
}

// stay reports whether the other processes take part in several rounds, as workers do. A program may also start one for
// each round.
func stay(handovers []chain.Handover, period time.Duration) bool {
	first, all := map[int32]time.Duration{}, time.Duration(0)
	last := map[int32]time.Duration{}
	for _, h := range handovers {
		if h.By == 0 {
			continue
		}
		if _, known := first[h.By]; !known {
			first[h.By] = h.At
		}
		last[h.By] = h.At
	}
	for by, at := range last {
		all += at - first[by]
	}
	return all >= time.Duration(len(first)*minStay)*period
}

// confirms reports whether the handovers in which the thread asks for a batch have the period of all between the first
// and the last of them. Where it waits for batches that several workers make, others come meanwhile.
func confirms(requests, times []time.Duration) bool {
	asks := roundsOf(requests)
	if len(asks.alike) < minSteps {
		return true // it asks none whose threads are known
	}
	first, _ := slices.BinarySearch(times, requests[0])
	last, _ := slices.BinarySearch(times, requests[len(requests)-1])
	all := roundsOf(times[first : last+1])
	return (all.period - asks.period).Abs().Seconds() <= agree*all.period.Seconds()
}

// rounds are the times between handovers.
type rounds struct {
	all    []time.Duration
	period time.Duration   // the median of those that are alike
	alike  []time.Duration // of half to twice the period, in the order of length
	first  int             // of all, the first and the last one that is alike
	last   int
	least  time.Duration // of a round
}

// roundsOf finds the rounds between moments. What is much closer together than most time is divided belongs to one
// batch.
func roundsOf(times []time.Duration) (r rounds) {
	if len(times) < minSteps {
		return r
	}
	gaps := make([]time.Duration, len(times)-1)
	for i := range gaps {
		gaps[i] = times[i+1] - times[i]
	}
	r.least = time.Duration(oneBatch * float64(halfTime(gaps)))
	for round := range r.between(times) {
		r.all = append(r.all, round)
	}
	r.period = quantile(slices.Sorted(slices.Values(r.all)), 0.5)
	for range 2 { // the first time, rounds of something else may be among them
		r.alike, r.first = r.alike[:0], -1
		for i, round := range r.all {
			if r.likes(round) {
				if r.first < 0 {
					r.first = i
				}
				r.alike, r.last = append(r.alike, round), i
			}
		}
		slices.Sort(r.alike)
		r.period = quantile(r.alike, 0.5)
	}
	return r
}

// between returns the rounds between moments.
func (r *rounds) between(times []time.Duration) iter.Seq[time.Duration] {
	return func(yield func(time.Duration) bool) {
		begin := times[0]
		for _, at := range times[1:] {
			if at-begin >= r.least {
				if !yield(at - begin) {
					return
				}
				begin = at
			}
		}
	}
}

// likes reports whether a round is much like the period.
func (r *rounds) likes(round time.Duration) bool {
	times := float64(round) / float64(r.period)
	return times > 1/alikeRounds && times < alikeRounds
}

// count returns how many rounds between moments are alike.
func (r *rounds) count(times []time.Duration) (n int) {
	if r.period == 0 {
		return 0
	}
	for round := range r.between(times) {
		if r.likes(round) {
			n++
		}
	}
	return n
}

// confidence is how certain it is that rounds are steps, 0 to 1: most of the time between the first and the last one is
// in steps, they have much the same length, and there are some.
func (r *rounds) confidence() float64 {
	if len(r.alike) < minSteps || r.alternate() {
		return 0
	}
	return r.covered() * (1 - (fewRounds+r.spread())/math.Sqrt(float64(len(r.alike))))
}

// covered is the share of the time from the first to the last step that is in steps.
func (r *rounds) covered() float64 {
	var in, all time.Duration
	for i := max(0, r.first); i < len(r.all) && i <= r.last; i++ {
		all += r.all[i]
	}
	for _, round := range r.alike {
		in += round
	}
	if all == 0 {
		return 0
	}
	return in.Seconds() / all.Seconds()
}

// spread is the distance of the quartiles, as a share of the period.
func (r *rounds) spread() float64 {
	return (quantile(r.alike, 0.75) - quantile(r.alike, 0.25)).Seconds() / r.period.Seconds()
}

// alternate reports whether rounds are more like the second, third or so one before them than like the last: two or
// more are one step, or two kinds of steps take turns.
func (r *rounds) alternate() bool {
	next := r.unlike(1)
	if next <= unlikeRounds {
		return false
	}
	for every := 2; every <= longestPattern && minPattern*every <= len(r.all); every++ {
		if r.unlike(every) < patternShare*next {
			return true
		}
	}
	return false
}

// unlike is how much rounds differ from those so many before them, as a share of the period; the median.
func (r *rounds) unlike(every int) float64 {
	if every >= len(r.all) {
		return math.Inf(1)
	}
	off := make([]time.Duration, 0, len(r.all))
	for i, round := range r.all[every:] {
		off = append(off, (round - r.all[i]).Abs())
	}
	slices.Sort(off)
	return quantile(off, 0.5).Seconds() / r.period.Seconds()
}

// halfTime returns the length such that half of the time is in gaps of at most that, without the longest of them.
func halfTime(gaps []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(gaps))
	sorted = sorted[:len(sorted)-int(pauses*float64(len(sorted)))]
	all, sum := time.Duration(0), time.Duration(0)
	for _, g := range sorted {
		all += g
	}
	for _, g := range sorted {
		if sum += g; sum >= all/2 {
			return g
		}
	}
	return 0
}

// quantile of sorted lengths; 0 of none.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}
