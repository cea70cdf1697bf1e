package window

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger"
)

// Stall is a stretch of a window in which it waited for storage much of the time.
type Stall struct {
	Start, End time.Duration // monotonic
	Waited     time.Duration // storage stall of the ledger in this stretch
}

const (
	minStallShare = 0.25                   // the smallest storage share of a reading interval that counts
	minStallGap   = 200 * time.Millisecond // stretches closer than this are one
	minStall      = 200 * time.Millisecond // shorter stretches are left out
	maxStalls     = 32                     // the longest are kept
)

// stalls finds the stretches. Of several GPUs only the first counts: they share the job's storage.
func (b *builder) stalls() {
	if b.FromMemory || b.bounded {
		return
	}
	gpu := ""
	if len(b.GPUIDs) > 0 {
		gpu = b.GPUIDs[0]
	}
	var all []Stall
	var gap time.Duration // storage stall since the last stretch ended
	storage := history.Key{Series: history.LedgerStorage, ID: ledger.ID(b.machine.Target.Job, gpu)}
	for _, s := range b.history.Steps(storage, b.from(), b.to()) {
		length := s.End - s.Start
		waited := min(seconds(s.Grown), length)
		if length <= 0 || waited.Seconds() < minStallShare*length.Seconds() {
			gap += waited
			continue
		}
		if n := len(all); n > 0 && s.Start-all[n-1].End < minStallGap {
			all[n-1].End = s.End
			all[n-1].Waited += gap + waited
		} else {
			all = append(all, Stall{s.Start, s.End, waited})
		}
		gap = 0
	}
	if len(all) > 0 {
		b.StallBegan = all[0].Start
	}
	b.Stalls = longest(slices.DeleteFunc(all, func(s Stall) bool { return s.End-s.Start < minStall }))
}

// longest keeps the maxStalls longest stretches, in order.
func longest(all []Stall) []Stall {
	if len(all) <= maxStalls {
		return all
	}
	byLength := slices.Clone(all)
	slices.SortFunc(byLength, func(x, y Stall) int { return cmp.Compare(y.End-y.Start, x.End-x.Start) })
	cut := byLength[maxStalls-1].End - byLength[maxStalls-1].Start
	all = slices.DeleteFunc(all, func(s Stall) bool { return s.End-s.Start < cut })
	return all[:min(len(all), maxStalls)]
}

// seconds rounds to the nanosecond.
func seconds(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }
