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

// whatIf turns what the replay's clocks saved into speed-ups. No window can be shorter than the GPU worked in it, or
// than its threads need all cores.
func (b *builder) whatIf() {
	total := b.GPUTime().Seconds()
	shortest := b.shortest()
	faster := func(gain, shortest float64) float64 {
		return total / max(total-max(0, gain), shortest, total/maxSpeedup)
	}
	b.Gain = seconds(max(0, min(b.Gain.Seconds(), total-shortest)))
	b.WhatIf = &WhatIf{NoStorage: faster(b.Gain.Seconds(), shortest)}
	u := unsure{
		total: total, likely: total - b.Gain.Seconds(), pending: total - b.scheduled(history.LedgerGainLow),
		shortest: shortest, busy: b.Busy.Seconds(), cpu: b.CPU.Seconds(),
		dark: max(0, total-b.scheduled(history.LedgerScheduled)),
	}
	u.doubt(b, max(b.Storage, b.Gain))
	short, long := u.durations()
	b.WhatIf.Low = max(1, total/long)
	if b.Kind != ModelLoad { // a part of its work is the kernel's, and unknown (docs/internals/schedule.md)
		b.WhatIf.High = max(b.WhatIf.NoStorage, total/short)
	}
	if b.scheduled(history.LedgerFed) > minFed*total {
		b.WhatIf.Workers = faster(b.scheduled(history.LedgerGainWorkers), shortest)
	} else {
		b.WhatIf.TwoWorkers = b.twoWorkers(total, shortest)
	}
	if len(b.GPUIDs) > 0 {
		half := total - b.Busy.Seconds()/2 // all that a GPU twice as fast can save is half of its own time
		b.WhatIf.GPU = faster(b.scheduled(history.LedgerGainGPU), half)
	}
}

// noNetwork sets what the replay predicts with peers that send at once, and the range with more requests at once.
func (b *builder) noNetwork() {
	total := b.GPUTime().Seconds()
	shortest := b.shortest()
	gain := max(0, min(b.scheduled(history.LedgerGainNetwork), total-shortest))
	likely := total - gain
	b.WhatIf.NoNetwork = total / max(likely, total/maxSpeedup)
	u := unsure{
		total: total, likely: likely, pending: likely,
		shortest: shortest, busy: b.Busy.Seconds(), cpu: b.CPU.Seconds(),
		dark: max(0, total-b.scheduled(history.LedgerScheduled)),
	}
	u.doubt(b, max(b.Storage+b.Network, seconds(gain)))
	short, long := u.durations()
	b.WhatIf.NetworkLow, b.WhatIf.NetworkHigh = max(1, total/long), max(b.WhatIf.NoNetwork, total/short)
	short, long = u.withRequests(gain)
	b.WhatIf.RequestsLow, b.WhatIf.RequestsHigh = max(1, total/long), max(b.WhatIf.NetworkHigh, total/short)
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
func (b *builder) shortest() float64 {
	shortest := b.Busy.Seconds()
	if b.machine.Cores > 0 {
		work := b.scheduled(history.LedgerWork) / float64(b.machine.Cores) // each GPU's ledger has all of it
		shortest = max(shortest, work)
	}
	return shortest
}

// speedup sets the speed-up without storage, and its range. Of a window that waits for the network it is that without
// the network.
func (b *builder) speedup(total float64) {
	if b.Verdict == NetworkBound {
		if w := b.WhatIf; w != nil && w.NoNetwork > 0 {
			b.Speedup, b.SpeedupLow, b.SpeedupHigh = w.NoNetwork, w.NetworkLow, w.NetworkHigh
		}
		return
	}
	b.Speedup = total / (total - b.Gain.Seconds())
	if w := b.WhatIf; w != nil {
		b.SpeedupLow, b.SpeedupHigh = w.Low, w.High
		return
	}
	likely := total - b.Gain.Seconds()
	u := unsure{
		total: total, likely: likely, pending: likely, work: guessDoubt, shortest: b.Busy.Seconds(), busy: b.Busy.Seconds(),
		cpu: b.CPU.Seconds(), shared: b.CPUUsed, dark: b.Uncertainty * total, unseen: b.Other.Seconds(),
	}
	short, long := u.durations()
	b.SpeedupLow = max(1, total/long)
	if b.Kind != ModelLoad {
		b.SpeedupHigh = max(b.Speedup, total/short)
	}
}

// twoWorkers is the speed-up, at most, with two workers where only the leading thread reads; 0 if that is not so. They
// halve what it does while the GPU idles, and hide it behind the GPU.
func (b *builder) twoWorkers(total, shortest float64) float64 {
	if len(b.GPUIDs) == 0 || b.Storage.Seconds() <= minOwn*total {
		return 0
	}
	return total / max(shortest, (b.Storage+b.CPU).Seconds()/2, total/maxSpeedup)
}

// boundRate takes into account that the device that the window waited for can serve only so many times what it did:
// neither more workers nor a faster GPU get more from it.
func (b *builder) boundRate(most float64) {
	if w := b.WhatIf; w != nil {
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

// doubt sets how uncertain the window's work is. Work is slower, or competes with others in another order, where it is
// between waits that would not be there. So the doubt is in full from the waiting that counts as a stall on, and less
// with less of it.
func (u *unsure) doubt(b *builder, waited time.Duration) {
	share := min(1, waited.Seconds()/max(Thresholds.Stall*u.total, 1e-9))
	u.work, u.shared = workDoubt*share, b.CPUUsed*share
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
