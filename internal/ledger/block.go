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
	overlap            float64 // s, at least, in which the GPU worked while the thread fetched data
	spinning, sleeping float64 // share of the pieces of computing and of waitingGPU in which the GPU worked
}

const (
	waitsMemory = 0.7  // weight of what was learned before a block
	minOverlap  = 0.15 // share of the GPU's busy time from which a program queues work for it and goes on
)

// sleeps reports whether the thread sleeps while the GPU works, and does not spin.
func (w *gpuWaits) sleeps() bool { return w.slept > w.busy/2 }

// queues reports whether the thread gives the GPU work and fetches the next data meanwhile.
func (w *gpuWaits) queues() bool { return w.overlap > minOverlap*w.busy }

// learn uses the times of a block, by class. The GPU worked while the thread fetched data if it was idle for less time
// than that, or if the thread neither ran nor slept for long enough to have waited for it.
func (w *gpuWaits) learn(time *[classes]float64, busy, idle float64) {
	overlap := max(0, time[fetching]-idle, busy-time[computing]-time[waitingGPU]-time[dark])
	w.slept = w.slept*waitsMemory + min(time[waitingGPU], busy)
	w.overlap = w.overlap*waitsMemory + overlap
	w.busy = w.busy*waitsMemory + busy
}

// divide finds the share of each class in which the GPU was idle. While the thread fetches data, the GPU has no work,
// so that this time is idle first. The rest of the idle time lies in what the thread did otherwise. Sleeping that is
// longer than the GPU worked is idle for certain. What remains is work. If the program queues work for the GPU, the GPU
// may be idle in any part of what the thread does besides waiting for it.
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
	left := length - busy
	waits.learn(&time, busy, left)
	take := func(c class, most float64) {
		of := min(left, most, time[c]*(1-b.idle[c]))
		if of > 0 {
			b.idle[c] += of / time[c]
			left -= of
		}
	}
	if all := time[fetching] + time[computing]; waits.queues() && all > 0 {
		share := min(1, left/all)
		take(fetching, share*time[fetching])
		take(computing, share*time[computing])
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
		if c == dark {
			s.dark += of
			continue
		}
		idle := of * b.idle[c]
		if p.Feeder {
			s.fed += idle
		}
		fetch := 0.0
		if p.Kind == chain.Work || p.Kind == chain.NoCore {
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
