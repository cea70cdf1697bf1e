package history

import "time"

const (
	gapLeast = 3 * time.Second // sampling is never rarer than once a second
	gapRows  = 3               // rows of a tier that are not there in a row
)

// Unread is how much of an interval lies in gaps in which nothing was read of s: what reads was stopped, or the machine did
// not let it run. A suspension is none, for the monotonic clock stands still meanwhile. Such a gap is at least three seconds
// long, and in a part of the history that was thinned at least three of its rows.
func (h *History) Unread(s Series, start, end time.Duration) (unread time.Duration) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	a := &h.axes[s.kind().axis()]
	if a.used && end-a.last >= gapLeast {
		unread = end - max(start, a.last)
	}
	for i := range a.tiers {
		t := &a.tiers[i]
		if !t.covers(start) {
			continue
		}
		least := max(gapLeast, gapRows*t.period)
		for n := max(t.after(start), t.first()+1); n < t.next; n++ {
			from := max(start, t.at(n-1))
			if from >= end {
				break
			}
			if t.at(n)-t.at(n-1) >= least {
				unread += min(end, t.at(n)) - from
			}
		}
		break
	}
	return unread
}
