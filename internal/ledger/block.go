package ledger

import (
	"time"

	"github.com/stallspan/stallspan/internal/ledger/chain"
)

// block is a stretch of time of the thread that drives a GPU. The driver says how long the GPU worked in it, and not
// when. The pieces say what the thread did.
type block struct {
	timeline *chain.Timeline
	pieces   []chain.Piece
	idle     [classes]float64 // share of each class of pieces in which the GPU was idle
}

// class is how likely the GPU is idle in a piece.
type class int

const (
	fetching   class = iota // the thread, or one that it waits for, fetches data or prepares them
	computing               // the thread works or has no core. It may spin to wait for the GPU
	waitingGPU              // it sleeps in a call that may wait for the GPU
	waiting                 // it sleeps for something else
	dark                    // no evidence
	classes    int   = iota
)

func (b *block) classOf(p *chain.Piece) class {
	switch p.Kind {
	case chain.Storage:
		return fetching
	case chain.Work, chain.NoCore:
		if p.Feeder {
			return fetching
		}
		return computing
	case chain.Other:
		switch b.timeline.Reason(p).Kind {
		case chain.ForNetwork, chain.ForPipe, chain.ForChild:
			return waiting
		}
		return waitingGPU
	}
	return dark
}

// gpuWaits is how a thread waits for its GPU. Evidence fades.
type gpuWaits struct {
	slept, busy        float64 // s, of the GPU's busy time: as long as the thread slept, and all
	spinning, sleeping float64 // share of the pieces of computing and of waitingGPU in which the GPU worked
}

const waitsMemory = 0.9 // weight of what was learned before a block

// sleeps reports whether the thread sleeps while the GPU works, and does not spin.
func (w *gpuWaits) sleeps() bool { return w.slept > w.busy/2 }

func (w *gpuWaits) learn(sleep, busy float64) {
	w.slept = w.slept*waitsMemory + min(sleep, busy)
	w.busy = w.busy*waitsMemory + busy
}

// divide finds the share of each class in which the GPU was idle. While the thread fetches data, the GPU has no work, so
// that this time is idle first. The rest of the idle time lies in what the thread did otherwise. Sleeping that is longer
// than the GPU worked is idle for certain. What remains is work.
func (b *block) divide(length, busy float64, waits *gpuWaits) {
	busy = min(busy, length)
	var time [classes]float64
	for i := range b.pieces {
		p := &b.pieces[i]
		of := (p.To - p.From).Seconds()
		if c := b.classOf(p); c == computing {
			time[fetching] += of * p.Fetch
			time[computing] += of * (1 - p.Fetch)
		} else {
			time[c] += of
		}
	}
	waits.learn(time[waitingGPU], busy)
	left := length - busy
	take := func(c class, most float64) {
		of := min(left, most, time[c])
		if of > 0 {
			b.idle[c] = of / time[c]
			left -= of
		}
	}
	take(fetching, left)
	take(waiting, left)
	take(dark, left)
	if waits.sleeps() {
		take(computing, left)
		take(waitingGPU, left)
	} else {
		take(waitingGPU, left)
		take(computing, left)
	}
	for c, of := range map[class]*float64{computing: &waits.spinning, waitingGPU: &waits.sleeping} {
		if time[c] > 0 {
			*of = *of*waitsMemory + (1-b.idle[c])*(1-waitsMemory)
		}
	}
}

// add adds the pieces of a block from one moment to another.
func (s *sums) add(b *block, from, to time.Duration) {
	for i := range b.pieces {
		p := &b.pieces[i]
		of := (min(p.To, to) - max(p.From, from)).Seconds()
		if of <= 0 {
			continue
		}
		c := b.classOf(p)
		idle := of * b.idle[c]
		if p.Feeder {
			s.fed += idle
		}
		fetch := 0.0
		if p.Kind == chain.Work {
			fetch = idle * p.Fetch
			if c == computing {
				fetch = of * p.Fetch * b.idle[fetching]
				idle = of*(1-p.Fetch)*b.idle[computing] + fetch
			}
		}
		s.busy += of - idle
		switch p.Kind {
		case chain.Storage:
			s.storage += idle
		case chain.Work, chain.NoCore:
			s.storage += fetch
			s.cpu += idle - fetch
		case chain.Other:
			s.other[b.timeline.Reason(p).Kind] += idle
		}
	}
}
