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
	Waited     time.Duration // of it, as the ledger has it
}

const (
	stallShare  = 0.25                   // a reading interval counts as stalled from this share of it on
	shortestGap = 200 * time.Millisecond // stretches closer than this are one
	shortest    = 200 * time.Millisecond // shorter stretches are not told
	mostStalls  = 32                     // the longest are kept
)

// stalls finds the stretches, on the first GPU alone when there are several: they share the job's storage.
func (r *Report) stalls(h *history.History, job string) {
	if r.waitless {
		return
	}
	gpu := ""
	if len(r.GPUIDs) > 0 {
		gpu = r.GPUIDs[0]
	}
	var gap time.Duration // waited since the last stretch ended
	for _, s := range h.Steps(history.Key{Series: history.LedgerStorage, ID: ledger.ID(job, gpu)}, r.from(), r.to()) {
		length := s.End - s.Start
		waited := min(seconds(s.Grown), length)
		if length <= 0 || waited.Seconds() < stallShare*length.Seconds() {
			gap += waited
			continue
		}
		if n := len(r.Stalls); n > 0 && s.Start-r.Stalls[n-1].End < shortestGap {
			r.Stalls[n-1].End = s.End
			r.Stalls[n-1].Waited += gap + waited
		} else {
			r.Stalls = append(r.Stalls, Stall{s.Start, s.End, waited})
		}
		gap = 0
	}
	if len(r.Stalls) > 0 {
		r.StallBegan = r.Stalls[0].Start
	}
	r.Stalls = slices.DeleteFunc(r.Stalls, func(s Stall) bool { return s.End-s.Start < shortest })
	if len(r.Stalls) > mostStalls {
		longest := slices.Clone(r.Stalls)
		slices.SortFunc(longest, func(a, b Stall) int { return cmp.Compare(b.End-b.Start, a.End-a.Start) })
		cut := longest[mostStalls-1].End - longest[mostStalls-1].Start
		r.Stalls = slices.DeleteFunc(r.Stalls, func(s Stall) bool { return s.End-s.Start < cut })
		r.Stalls = r.Stalls[:min(len(r.Stalls), mostStalls)]
	}
}

// seconds rounds to the nanosecond.
func seconds(s float64) time.Duration { return time.Duration(math.Round(s * float64(time.Second))) }
