package window

import (
	"time"

	"github.com/stallspan/stallspan/internal/history"
)

// GPUUse is how one GPU of a window was used, if it reports more than its busy time.
type GPUUse struct {
	ID     string
	Busy   float64 // share of the window in which it worked
	Means  history.Means
	Limits history.GPULimits // as last reported
}

// uses returns the means of GPUs.
func (v *view) uses(gpus []string) (all []GPUUse) {
	for _, id := range gpus {
		use := GPUUse{ID: id, Means: v.history.Means(id, v.Start.Mono, v.End.Mono)}
		if use.Means.Empty() {
			continue
		}
		use.Busy = share(v.history, history.Key{Series: history.LedgerBusy, ID: v.ledgerID(id)}, v.from(), v.to())
		use.Limits = v.history.Limits(id)
		all = append(all, use)
	}
	return all
}

// share returns the growth of a sum of seconds as a share of an interval; 0 if unknown.
func share(h *history.History, key history.Key, from, to history.Point) float64 {
	d, ok := h.Between(key, from, to)
	if seconds := (to.At - from.At).Seconds(); ok && seconds > 0 {
		return min(1, d.Value/seconds)
	}
	return 0
}

// part is a GPU's use over a part of the window that is long enough to have readings of its own.
type part struct {
	busy  float64
	means history.Means
}

func partOf(h *history.History, gpu string, from, to time.Duration) part {
	busy := share(h, history.Key{Series: history.GPUBusyTime, ID: gpu}, history.Point{At: from}, history.Point{At: to})
	return part{busy, h.Means(gpu, from, to)}
}
