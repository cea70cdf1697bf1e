package window

import (
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/history"
)

// Stall is a stretch of a window in which it waited for storage most of the time.
type Stall struct {
	Start, End time.Duration // monotonic
	Waited     time.Duration // of it, on the GPU that waited longest
}

const (
	stallShare  = 0.5                    // a reading interval counts as stalled from this share of it on
	shortestGap = 200 * time.Millisecond // stretches closer than this are one
	shortest    = 200 * time.Millisecond // shorter stretches are not told
	mostStalls  = 32                     // the longest are kept
)

// stalls finds the stretches, on the first GPU alone when there are several: they share the job's storage.
func (r *Report) stalls(h *history.History, job string) {
	gpu := ""
	if len(r.GPUIDs) > 0 {
		gpu = r.GPUIDs[0]
	}
	if r.Storage < shortest {
		return
	}
	for _, s := range h.Steps(history.Key{Series: history.LedgerStorage, ID: LedgerID(job, gpu)}, r.from(), r.to()) {
		length := (s.End - s.Start).Seconds()
		if length <= 0 || s.Grown < stallShare*length {
			continue
		}
		waited := seconds(min(s.Grown, length))
		if n := len(r.Stalls); n > 0 && s.Start-r.Stalls[n-1].End < shortestGap {
			r.Stalls[n-1].End = s.End
			r.Stalls[n-1].Waited += waited
			continue
		}
		r.Stalls = append(r.Stalls, Stall{s.Start, s.End, waited})
	}
	r.Stalls = slices.DeleteFunc(r.Stalls, func(s Stall) bool { return s.End-s.Start < shortest })
	if len(r.Stalls) > mostStalls {
		longest := slices.Clone(r.Stalls)
		slices.SortFunc(longest, func(a, b Stall) int { return int((b.End - b.Start) - (a.End - a.Start)) })
		cut := longest[mostStalls-1].End - longest[mostStalls-1].Start
		r.Stalls = slices.DeleteFunc(r.Stalls, func(s Stall) bool { return s.End-s.Start < cut })
		r.Stalls = r.Stalls[:min(len(r.Stalls), mostStalls)]
	}
}
