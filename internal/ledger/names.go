package ledger

import (
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/ledger/chain"
)

// names remembers what a target's leading thread waited for, as other.
type names struct {
	recent  []namedTime   // in the order of time
	dropped time.Duration // end of the newest that had no room in recent
	all     []named       // of the last minutes
	hold    Hold          // the newest wait for storage or other threads, up to the newest block
	holds   []Hold        // those before it that are long enough, in the order of time
}

// Hold is a wait of a target's leading thread, or of one that it waits for, that nothing ended: for storage, or for
// what other threads give it, by a pipe or a lock.
type Hold struct {
	From, To time.Duration
	Others   bool // for other threads

	looked time.Duration // in which it looked whether these live
}

// namedTime is what one reason took of a block.
type namedTime struct {
	from, to time.Duration // of the block
	named
}

type named struct {
	chain.Reason
	time  float64 // s; in names.all, old evidence fades
	times float64 // how often it was waited for, as time
}

// Wait is what a target's leading thread waited for, by what it is known of. Only shares of Time and Times have a
// meaning: of a long interval, it is what the last minutes had.
type Wait struct {
	chain.Reason
	Time  float64
	Times float64 // waits
}

// Waits are what a target's leading thread waited for, in no order.
type Waits []Wait

const (
	maxRecent = 1024 // about five minutes, with three reasons in each block
	maxNames  = 32
	tooLittle = 1e-4 // s
	maxHolds  = 16
)

// learn uses a block of a thread's time that cannot change any more.
func (n *names) learn(b *block, leader int, from, to time.Duration) {
	kept := n.all[:0]
	for _, known := range n.all {
		known.times *= fading
		if known.time *= fading; known.time > tooLittle {
			kept = append(kept, known)
		}
	}
	n.all = kept
	var of []named
	for i := range b.pieces {
		p := &b.pieces[i]
		n.extend(p, b.timeline)
		if p.Kind == chain.Other {
			of = add(of, named{b.timeline.Reason(leader, p), (p.To - p.From).Seconds() * b.idle[b.classOf(i)], 1})
		}
	}
	for _, one := range of {
		n.all = add(n.all, one)
		n.remember(namedTime{from, to, one})
	}
}

// extend takes the next piece of the thread's time.
func (n *names) extend(p *chain.Piece, of threads) {
	h := Hold{From: p.From, To: p.To}
	holds := p.Kind == chain.Storage
	if p.Kind == chain.Other {
		switch of.ReasonKind(p) {
		case chain.ForPipe, chain.ForLock, chain.ForEvent, chain.ForChild:
			h.Others, holds = true, true
		}
	}
	if p.From == n.hold.To {
		looked := n.hold.looked + p.To - p.From
		switch {
		case holds && h.Others == n.hold.Others:
			n.hold.To = p.To
			return
		case n.hold.Others && p.Kind != chain.Storage && looked.Seconds() <= looks*(p.To-n.hold.From).Seconds():
			n.hold.To, n.hold.looked = p.To, looked
			return
		}
	}
	if n.hold.long() {
		if len(n.holds) == maxHolds {
			n.holds = append(n.holds[:0], n.holds[1:]...)
		}
		n.holds = append(n.holds, n.hold)
	}
	if n.hold = (Hold{}); holds {
		n.hold = h
	}
}

// long reports whether a wait is longer than storage takes that works.
func (h Hold) long() bool { return h.To-h.From >= MinHold }

// Holds lists the long waits of a target's leading thread from one moment to another, each as long as it is
// within.
func (e *Estimator) Holds(id string, from, to time.Duration) (all []Hold) {
	for _, a := range e.accounts {
		if a.totals.ID != id {
			continue
		}
		s := a.evidence()
		ahead := names{hold: s.names.hold, holds: slices.Clone(s.names.holds)}
		for _, p := range s.pieces(from, to) {
			ahead.extend(&p, s.timeline)
		}
		for _, h := range append(ahead.holds, ahead.hold) {
			if h.From, h.To = max(h.From, from), min(h.To, to); h.long() {
				all = append(all, h)
			}
		}
	}
	return all
}

func (n *names) remember(one namedTime) {
	if one.time <= 0 {
		return
	}
	if half := maxRecent / 2; len(n.recent) >= maxRecent {
		n.dropped = n.recent[half-1].to
		n.recent = append(n.recent[:0], n.recent[half:]...)
	}
	n.recent = append(n.recent, one)
}

// add adds a time to a list, in which it may take the place of the smallest.
func add(list []named, one named) []named {
	least := 0
	for i := range list {
		if list[i].Reason == one.Reason {
			list[i].time += one.time
			list[i].times += one.times
			return list
		}
		if list[i].time < list[least].time {
			least = i
		}
	}
	switch {
	case one.time <= 0:
	case len(list) < maxNames:
		return append(list, one)
	case list[least].time < one.time:
		list[least] = one
	}
	return list
}

// pieces returns what the time of the leading thread came down to in the part of an interval that is not settled yet.
func (s *schedule) pieces(from, to time.Duration) []chain.Piece {
	if s.timeline == nil {
		return nil
	}
	if s.begun {
		from = max(from, s.done)
	}
	if to = min(to, s.timeline.Until()); from >= to {
		return nil
	}
	return s.timeline.Walk(s.leader, from, to, nil)
}

// open returns what the leading thread waited for in the part of an interval that is not settled yet. A short window,
// or one at the begin of a job, may have no other.
func (s *schedule) open(from, to time.Duration) (list []named) {
	pieces := s.pieces(from, to)
	for i := range pieces {
		if p := &pieces[i]; p.Kind == chain.Other {
			list = add(list, named{s.timeline.Reason(s.leader, p), (p.To - p.From).Seconds(), 1})
		}
	}
	return list
}

// waits lists what was waited for from one moment to another; open is of the part that is not settled. Of a kind that
// it does not remember of that time, it lists that of the last minutes.
func (n *names) waits(from, to time.Duration, open []named) (waits Waits) {
	var of [chain.ReasonKinds][]named
	for i := range n.recent {
		if one := &n.recent[i]; one.from < to && one.to > from && from >= n.dropped {
			of[one.Kind] = add(of[one.Kind], one.named)
		}
	}
	for _, one := range open {
		of[one.Kind] = add(of[one.Kind], one)
	}
	for kind, list := range of {
		if len(list) == 0 {
			list = n.all
		}
		for _, known := range list {
			if known.Kind == chain.ReasonKind(kind) {
				waits = append(waits, Wait{known.Reason, known.time, known.times})
			}
		}
	}
	return waits
}

// Name names the waits of a kind by the one with the most time; "" without any.
func (w Waits) Name(kind chain.ReasonKind) (name string) {
	sum, most := 0.0, 0.0
	for i := range w {
		if w[i].Kind != kind {
			continue
		}
		sum += w[i].Time
		if w[i].Time > most {
			name, most = w[i].Name, w[i].Time
		}
	}
	if name != "" && most < mostly*sum {
		name += " and others"
	}
	return name
}
