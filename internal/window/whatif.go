package window

import (
	"time"

	"github.com/stallspan/stallspan/internal/history"
)

// WhatIf holds the speed-ups that a replay of the window's schedule predicts. 1 means no change, 0 that it is unknown.
type WhatIf struct {
	NoStorage  float64 // storage without waiting; also Report.Speedup
	Low, High  float64 // the range of NoStorage; High is 0 if only Low is known
	Workers    float64 // twice as many threads or processes that read ahead, if the disk can serve them
	TwoWorkers float64 // two of them where the leading thread reads itself, at most
	GPU        float64 // a GPU twice as fast

	NoNetwork               float64 // peers that send at once; 0 without waiting for data of them
	NetworkLow, NetworkHigh float64 // its range, as Low and High

	RequestsLow, RequestsHigh float64 // range with moreRequests times as many requests at once; 0 without NoNetwork
}

// predict turns what the replay's clocks saved into speed-ups. No window can be shorter than the GPU worked in it, or
// than its threads need all cores. It returns nil without a replay.
func predict(v *view, r *Report) *WhatIf {
	if !r.Split || !r.Evidence.Followed() {
		return nil
	}
	total, shortest := r.GPUTime().Seconds(), v.shortest(r, r.busiest())
	faster := func(gain, shortest float64) float64 {
		return total / max(total-max(0, gain), shortest, total/maxSpeedup)
	}
	w := &WhatIf{NoStorage: faster(r.Gain.Seconds(), shortest)}
	u := newUnsure(v, r, r.Gain.Seconds(), max(r.Storage, r.Gain))
	u.pending = total - v.scheduled(r, history.LedgerGainLow)
	short, long := u.durations()
	w.Low = max(1, total/long)
	if r.Kind != ModelLoad { // a part of its work is the kernel's, and unknown (docs/internals/schedule.md)
		w.High = max(w.NoStorage, total/short)
	}
	if v.scheduled(r, history.LedgerFed) > minFed*total {
		w.Workers = faster(v.scheduled(r, history.LedgerGainWorkers), shortest)
	} else {
		w.TwoWorkers = r.twoWorkers(total, shortest)
	}
	if len(r.GPUIDs) > 0 {
		half := total - r.busiest().Seconds()/2 // all that a GPU twice as fast can save is half of its own time
		w.GPU = faster(v.scheduled(r, history.LedgerGainGPU), half)
	}
	w.bound(r.most)
	if r.served {
		w.predictNetwork(v, r, total, shortest)
	}
	return w
}

// predictNetwork sets what the replay predicts with peers that send at once, and the range with more requests at once.
func (w *WhatIf) predictNetwork(v *view, r *Report, total, shortest float64) {
	gain := max(0, min(v.scheduled(r, history.LedgerGainNetwork), total-shortest))
	w.NoNetwork = total / max(total-gain, total/maxSpeedup)
	u := newUnsure(v, r, gain, max(r.Storage+r.Network, seconds(gain)))
	short, long := u.durations()
	w.NetworkLow, w.NetworkHigh = max(1, total/long), max(w.NoNetwork, total/short)
	short, long = u.withRequests(gain)
	w.RequestsLow, w.RequestsHigh = max(1, total/long), max(w.NetworkHigh, total/short)
}

// withRequests returns the range with moreRequests times as many requests at once, if peers that send at once would
// gain so much. Peers stay as slow as they are, so waiting for them is only divided. At best, all that the job does
// while its GPU idles is done ahead then, while the GPU works.
func (u unsure) withRequests(gain float64) (short, long float64) {
	divided, ahead := u, u
	divided.likely += gain / moreRequests
	if u.busy > 0 {
		ahead.likely = max(u.shortest, u.likely-u.busy)
	}
	_, long = divided.durations()
	short, _ = ahead.durations()
	return short, long
}

// shortest is how long the GPU and all cores worked, in seconds: no window can be shorter.
func (v *view) shortest(r *Report, busy time.Duration) float64 {
	if v.machine.Cores == 0 {
		return busy.Seconds()
	}
	work := v.scheduled(r, history.LedgerWork) / float64(v.machine.Cores) // each GPU's ledger has all of it
	return max(busy.Seconds(), work)
}

// speedup sets the speed-up without storage, and its range. Of a window that waits for the network it is that without
// the network.
func (j *Judgement) speedup(r *Report) {
	total := r.GPUTime().Seconds()
	w := j.WhatIf
	if j.Verdict == NetworkBound {
		if w != nil && w.NoNetwork > 0 {
			j.Speedup, j.SpeedupLow, j.SpeedupHigh = w.NoNetwork, w.NetworkLow, w.NetworkHigh
		}
		return
	}
	likely := total - r.Gain.Seconds()
	j.Speedup = total / likely
	if w != nil {
		j.SpeedupLow, j.SpeedupHigh = w.Low, w.High
		return
	}
	u := unsure{
		total: total, likely: likely, pending: likely, work: guessDoubt, shortest: r.busiest().Seconds(), busy: r.Busy.Seconds(),
		cpu: r.CPU.Seconds(), shared: r.CPUUsed, dark: j.Uncertainty * total, unseen: r.Other.Seconds(),
	}
	short, long := u.durations()
	j.SpeedupLow = max(1, total/long)
	if r.Kind != ModelLoad {
		j.SpeedupHigh = max(j.Speedup, total/short)
	}
}

// twoWorkers is the speed-up, at most, with two workers where only the leading thread reads; 0 if that is not so. They
// halve what it does while the GPU idles, and hide it behind the GPU.
func (r *Report) twoWorkers(total, shortest float64) float64 {
	if len(r.GPUIDs) == 0 || r.Storage.Seconds() <= minOwn*total {
		return 0
	}
	return total / max(shortest, (r.Storage+r.CPU).Seconds()/2, total/maxSpeedup)
}

// bound takes into account that the device that the window waited for can serve only so many times what it did; 0 if
// that is unknown. Neither more workers nor a faster GPU get more from it.
func (w *WhatIf) bound(most float64) {
	if most > 0 {
		most = max(1, most)
		w.Workers, w.TwoWorkers, w.GPU = min(w.Workers, most), min(w.TwoWorkers, most), min(w.GPU, most)
	}
}

// unsure is what is not certain about a window's duration without storage. All times are in seconds.
type unsure struct {
	total, likely float64 // with storage, and without
	pending       float64 // without waiting for storage, but with the kernel's work to fetch data
	shortest      float64 // of the GPU's time and all cores
	busy, cpu     float64 // of the ledger; busy is 0 without a GPU
	dark          float64 // without evidence
	unseen        float64 // spent on what no evidence explains: it may be for storage, too
	work          float64 // how much less its work may be, as a share of it
	shared        float64 // share of the time of all cores in which they worked
}

// newUnsure returns what is not certain about a window that gains so much by not waiting any more. Work is slower, or
// competes with others in another order, where it is between waits that would not be there. So the doubt is in full from
// the waiting that counts as a stall on, and less with less of it.
func newUnsure(v *view, r *Report, gain float64, waited time.Duration) unsure {
	total := r.GPUTime().Seconds()
	share := min(1, waited.Seconds()/max(Thresholds.Stall*total, 1e-9))
	return unsure{
		total: total, likely: total - gain, pending: total - gain,
		shortest: v.shortest(r, r.busiest()), busy: r.Busy.Seconds(), cpu: (r.CPU + r.BusiestCore).Seconds(),
		dark: max(0, total-v.scheduled(r, history.LedgerScheduled)), work: workDoubt * share, shared: r.CPUUsed * share,
	}
}

// durations returns the range; neither end is 0. What is not certain is the window's work, which runs slower between
// reads, and where others use the cores; what no evidence covers; the kernel's work; and CPU stall that the replay
// hides behind the GPU.
func (u *unsure) durations() (short, long float64) {
	work := max(0, u.likely-u.busy)
	long = max(u.likely, min(u.pending, u.total))
	if u.busy > 0 {
		work, long = max(work, u.cpu), max(long, u.busy+u.cpu)
	}
	doubt := (u.work+sharedDoubt*u.shared)*work + otherDoubt*u.likely
	short = max(u.likely-doubt-u.dark-u.unseen, edgeDoubt*u.shortest)
	least := u.total / maxSpeedup
	return max(min(short, u.likely), least), max(long+doubt/2+u.dark, least)
}
