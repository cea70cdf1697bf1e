package window

import (
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger"
)

// GPUUse is how one GPU of a window was used, if it reports more than its busy time.
type GPUUse struct {
	ID     string
	Busy   float64 // share of the window in which it worked
	Means  history.Means
	Limits history.GPULimits // as last reported
}

// uses adds the means of the window's GPUs.
func (b *builder) uses() {
	for _, id := range b.GPUIDs {
		use := GPUUse{ID: id, Means: b.history.Means(id, b.Start.Mono, b.End.Mono)}
		if use.Means.Empty() {
			continue
		}
		busy := history.Key{Series: history.LedgerBusy, ID: ledger.ID(b.machine.Target.Job, id)}
		use.Busy = share(b.history, busy, b.from(), b.to())
		use.Limits = b.history.Limits(id)
		b.Uses = append(b.Uses, use)
	}
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
