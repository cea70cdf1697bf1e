package window

import (
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger"
)

// GPUUse is how one GPU of a window was used, as far as it tells more than how long it was busy.
type GPUUse struct {
	ID     string
	Busy   float64 // share of the window in which it worked
	Means  history.Means
	Limits history.GPULimits // as it told them last
}

// uses adds what the window's GPUs tell of themselves.
func (r *Report) uses(h *history.History, m Machine) {
	for _, id := range r.GPUIDs {
		use := GPUUse{ID: id, Means: h.Means(id, r.Start.Mono, r.End.Mono)}
		if use.Means.Empty() {
			continue
		}
		use.Busy = share(h, history.Key{Series: history.LedgerBusy, ID: ledger.ID(m.Target.Job, id)}, r.from(), r.to())
		use.Limits = h.Limits(id)
		r.Uses = append(r.Uses, use)
	}
}

// share is which part of an interval a sum of seconds grew by; 0 where that is not known.
func share(h *history.History, key history.Key, from, to history.Point) float64 {
	d, ok := h.Between(key, from, to)
	if seconds := (to.At - from.At).Seconds(); ok && seconds > 0 {
		return min(1, d.Value/seconds)
	}
	return 0
}

// part is a GPU's use over a part of the window, long enough to hold readings of its own.
type part struct {
	busy  float64
	means history.Means
}

func partOf(h *history.History, gpu string, from, to time.Duration) part {
	busy := share(h, history.Key{Series: history.GPUBusyTime, ID: gpu}, history.Point{At: from}, history.Point{At: to})
	return part{busy, h.Means(gpu, from, to)}
}
