package history

import "time"

const (
	minGap  = 3 * time.Second // the sampling interval is at most a second
	gapRows = 3               // consecutive missing rows of a tier
)

// Unread returns how much of an interval lies in gaps without a reading of s, because the program was stopped or not
// scheduled. A suspension is not a gap, because the monotonic clock stops. A gap is at least three seconds and three
// rows of the tier long.
func (h *History) Unread(s Series, start, end time.Duration) (unread time.Duration) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	a := &h.axes[s.kind().axis()]
	if a.used && end-a.last >= minGap {
		unread = end - max(start, a.last)
	}
	for i := range a.tiers {
		t := &a.tiers[i]
		if !t.covers(start) {
			continue
		}
		shortest := max(minGap, gapRows*t.period)
		for n := max(t.after(start), t.first()+1); n < t.next; n++ {
			from := max(start, t.at(n-1))
			if from >= end {
				break
			}
			if t.at(n)-t.at(n-1) >= shortest {
				unread += min(end, t.at(n)) - from
			}
		}
		break
	}
	return unread
}
