package window

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/history"
)

// Stall is a wait for storage, and as long as the waiting: one long wait where it was, or the short waits of a stretch
// of time, from where the first of them was.
type Stall struct{ Start, End time.Duration } // monotonic

// Waited is how long the window waited for storage.
func (s Stall) Waited() time.Duration { return s.End - s.Start }

// stalls finds the waits. Of several GPUs only the first counts: they share the job's storage.
func (v *view) stalls(r *Report) (all []Stall, began time.Duration) {
	if r.FromMemory || r.bounded {
		return nil, 0
	}
	storage := history.Key{Series: history.LedgerStorage, ID: v.ledgerID(r.ledgers()[0])}
	return stallsIn(v.history.Steps(storage, v.from(), v.to()))
}

// stallsIn returns the longest stalls in the order of time, and when the first wait began; 0 without one.
func stallsIn(steps []history.Step) (all []Stall, began time.Duration) {
	waits := stretches(intervals(steps))
	if len(waits) > 0 {
		began = waits[0].from
	}
	waits = slices.DeleteFunc(waits, func(s stretch) bool { return s.to-s.from < minStretch })
	var mixed time.Duration // length of all stretches with short waits
	for _, s := range waits {
		if !s.long {
			mixed += s.to - s.from
		}
	}
	part := max(minPart, mixed/time.Duration(mixedParts))
	for _, s := range waits {
		all = append(all, s.stalls(part)...)
	}
	return longest(all), began
}

// interval is one between two readings, with waiting.
type interval struct {
	from, to, waited time.Duration
	long             bool // a part of one long wait
}

// intervals returns those with enough waiting.
func intervals(steps []history.Step) (all []interval) {
	first := 0 // of the intervals up to now that may be the middle of one long wait
	for _, s := range steps {
		one := interval{from: s.Start, to: s.End}
		length := one.to - one.from
		one.waited = min(seconds(s.Grown), length)
		if length <= 0 || one.waited.Seconds() < minStallShare*length.Seconds() {
			continue
		}
		one.long = one.waited.Seconds() >= longShare*length.Seconds()
		all = append(all, one)
		if n := len(all) - 1; !one.long || n > 0 && all[n-1].to != one.from {
			shorten(all[first:n])
			first = n
		}
	}
	shorten(all[first:])
	return all
}

// shorten takes waits that follow each other as short ones if they are.
func shorten(waits []interval) {
	for i := range waits {
		if waits[len(waits)-1].to-waits[0].from < minLong {
			waits[i].long = false
		}
	}
}

// stretch is a stretch of time with waits.
type stretch struct {
	from, to time.Duration
	waits    []interval
	long     bool // they are one
}

// stretches returns the long waits, and what is between them. A long wait begins and ends within an interval.
func stretches(of []interval) (all []stretch) {
	for i, one := range of {
		begins := one.long || i+1 < len(of) && of[i+1].long && of[i+1].from == one.to
		n := len(all) - 1
		switch {
		case n >= 0 && all[n].goesOn(one), n >= 0 && !begins && !all[n].long && one.from-all[n].to < minStallGap:
			all[n].to, all[n].waits = one.to, append(all[n].waits, one)
		default:
			all = append(all, stretch{one.from, one.to, []interval{one}, begins})
		}
	}
	return all
}

// goesOn reports whether a long wait goes on in an interval, or ends in it.
func (s *stretch) goesOn(next interval) bool {
	last := s.waits[len(s.waits)-1]
	return s.long && next.from == s.to && (last.long || next.long && len(s.waits) == 1)
}

// stalls returns one stall for a long wait, and else one for each part of about that length.
func (s stretch) stalls(part time.Duration) (all []Stall) {
	first, last := s.waits[0], s.waits[len(s.waits)-1]
	if s.long {
		return []Stall{{first.to - first.waited, last.from + last.waited}}
	}
	parts := max(1, (s.to-s.from)/part)
	part = (s.to - s.from + parts - 1) / parts // rounded up, so that no rest becomes a part of its own
	next := s.from
	for _, one := range s.waits {
		if one.from >= next {
			all = append(all, Stall{one.from, one.from})
			for next <= one.from {
				next += part
			}
		}
		all[len(all)-1].End += one.waited
	}
	return all
}

// longest keeps the maxStalls longest stalls, in order.
func longest(all []Stall) []Stall {
	if len(all) <= maxStalls {
		return all
	}
	byLength := slices.Clone(all)
	slices.SortFunc(byLength, func(x, y Stall) int { return cmp.Compare(y.Waited(), x.Waited()) })
	cut := byLength[maxStalls-1].Waited()
	all = slices.DeleteFunc(all, func(s Stall) bool { return s.Waited() < cut })
	return all[:min(len(all), maxStalls)]
}

// seconds rounds to the nanosecond.
func seconds(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }
