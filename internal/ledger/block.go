package ledger

import (
	"math"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger/chain"
)

// block is a stretch of time of the thread that drives a GPU. The driver says how long the GPU worked in it, and not
// when. The pieces say what the thread did.
type block struct {
	timeline threads
	pieces   []chain.Piece
	launches []time.Duration // when the thread has given the GPU work
	queued   []bool          // for each piece: the GPU still has work; nil if that is not known
	grain    float64         // s, mean time between the moments that made the pieces; 0 for events
	division
	parts []part // one for each reading of the GPU, in the order of time; without any, the block is one
}

// class is how likely the GPU is idle in a piece.
type class int

const (
	fetching   class = iota // the thread, or one that it waits for, fetches data or prepares them
	queued                  // the same, while the GPU has work that it was given before
	computing               // the thread works or has no core. It may spin to wait for the GPU
	waitingGPU              // it sleeps in a call that may wait for the GPU
	waiting                 // it sleeps for something else
	dark                    // no evidence
	classes    int   = iota
)

// classOf is the class of the i-th piece.
func (b *block) classOf(i int) class {
	p := &b.pieces[i]
	c := b.kindOf(p)
	if b.queued != nil && b.queued[i] && (c == fetching || c == computing) {
		return queued
	}
	return c
}

func (b *block) kindOf(p *chain.Piece) class {
	switch p.Kind {
	case chain.Storage:
		return fetching
	case chain.Work, chain.NoCore:
		if p.Feeder {
			return fetching
		}
		return computing
	case chain.Other:
		switch b.timeline.ReasonKind(p) {
		case chain.ForSteal:
			if p.Feeder {
				return fetching
			}
			return computing
		case chain.ForNetwork, chain.ForPipe, chain.ForChild, chain.ForStop:
			return waiting
		}
		return waitingGPU
	}
	return dark
}

// divide finds in which part of its time the GPU was idle. steps say how long it worked in each.
func (b *block) divide(steps []history.Step, period time.Duration, waits *gpuWaits) {
	b.count(steps)
	var all, working step // working: where the GPU worked at all
	for i := range steps {
		one := step{time: b.parts[i].time, length: (steps[i].End - steps[i].Start).Seconds()}
		one.busy = min(steps[i].Grown, one.length)
		all.add(&one)
		if one.busy > 0 {
			working.add(&one)
		}
	}
	if working.busy > 0 {
		waits.learn(&working.time, working.busy, working.length-working.busy, b.doubt(working.length))
	}
	if waits.queues() && len(b.launches) > 0 {
		q := gpuQueue{steps[0].Start, steps[len(steps)-1].End, b.launches}
		b.pieces, b.queued = q.split(b.pieces, q.each(all.busy))
		b.count(steps)
	}
	for i := range b.parts {
		for c, t := range b.parts[i].time {
			b.time[c] += t
		}
	}
	order := waits.order()
	b.add(all.length-all.busy, order)
	if b.grain > 0 {
		b.scale(steps, order)
	} else {
		b.fit(steps, period, order)
	}
	waits.share(&b.division)
}

// doubt is how far off the time of a class may be in a stretch of that length, in seconds: two standard deviations.
func (b *block) doubt(length float64) float64 { return math.Sqrt(length * b.grain) }

// step is the time of a stretch: by class, of the GPU, and all, in seconds.
type step struct {
	time         [classes]float64
	busy, length float64
}

func (s *step) add(more *step) {
	s.busy, s.length = s.busy+more.busy, s.length+more.length
	for c, t := range more.time {
		s.time[c] += t
	}
}

// count makes the parts, with what the thread did in each.
func (b *block) count(steps []history.Step) {
	i := 0
	b.parts = b.parts[:0]
	for _, s := range steps {
		p := part{until: s.End}
		for ; i < len(b.pieces) && b.pieces[i].From < s.End; i++ {
			of := &b.pieces[i]
			length := (min(of.To, s.End) - max(of.From, s.Start)).Seconds()
			if c := b.classOf(i); c == computing {
				p.time[fetching] += length * of.Fetch
				p.time[computing] += length * (1 - of.Fetch)
			} else {
				p.time[c] += length
			}
			if of.To > s.End {
				break
			}
		}
		b.parts = append(b.parts, p)
	}
}

// cursor is a moment in a block: up to where it was added.
type cursor struct {
	at          time.Duration
	piece, part int // the first that may go on after it
}

// add adds the pieces of a block from a cursor to a moment, and moves the cursor there.
func (s *sums) add(b *block, from *cursor, to time.Duration) {
	for ; from.piece < len(b.pieces); from.piece++ {
		p := &b.pieces[from.piece]
		start, end := max(p.From, from.at), min(p.To, to)
		for start < end {
			for from.part < len(b.parts) && b.parts[from.part].until <= start {
				from.part++
			}
			of, at := &b.division, end
			if from.part < len(b.parts) {
				of, at = &b.parts[from.part].division, min(end, b.parts[from.part].until)
			}
			s.addPiece(b, from.piece, (at - start).Seconds(), of)
			start = at
		}
		if p.To > to {
			break
		}
	}
	from.at = max(from.at, to)
}

// addPiece adds a part of a piece that lasts so many seconds.
func (s *sums) addPiece(b *block, i int, of float64, d *division) {
	p, c := &b.pieces[i], b.classOf(i)
	if c == dark {
		s.dark += of
		return
	}
	idle := of * d.idle[c]
	if p.Feeder {
		s.fed += idle
	}
	fetch := 0.0
	if p.Kind == chain.Work || p.Kind == chain.NoCore {
		fetch = idle * p.Fetch
		if c == computing {
			fetch = of * p.Fetch * d.idle[fetching]
			idle = of*(1-p.Fetch)*d.idle[computing] + fetch
		}
	}
	s.busy += of - idle
	switch p.Kind {
	case chain.Storage:
		s.storage += idle
	case chain.Work, chain.NoCore:
		s.storage += fetch
		s.cpu += idle - fetch
		if p.Kind == chain.NoCore {
			s.ready += idle - fetch
		}
	case chain.Other:
		s.other[b.timeline.ReasonKind(p)] += idle
	}
}
