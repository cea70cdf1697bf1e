package chain

import (
	"math"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// viewOf returns what a leading thread was in at a moment. What it slept for is what those do that it waits for, in
// parts: each active one counts the same.
func (m *Moments) viewOf(w *watched, one *sample.Moment, drives bool) view {
	if one.State == sample.StateReady {
		return nil
	}
	own := m.pieceOf(&one.In)
	if own.Kind == Storage {
		return view{{own, 1, false}}
	}
	why := m.reasons.get(own.reason)
	if own.Kind == Other && fromAfar(why) && !local(why.From) {
		return view{{own, 1, true}}
	}
	if !waitsForOthers(&why, drives) {
		return view{{own, 1, false}}
	}
	same := why.Kind == ForLock
	near := func(o *sample.Other) bool { return why.Kind == ForTimer || o.Same == same }
	kinds := []doing{works, meets, spins}
	if why.Kind == ForTimer {
		kinds = kinds[:1] // it ends by itself, not when another one that waits goes on
	}
	most := func(list []sample.Other) (all view, many float64) {
		for _, what := range kinds {
			for _, among := range []func(*sample.Other) bool{near, func(*sample.Other) bool { return true }} {
				if all, many = m.others(list, what, among); many > 0 {
					return all, many
				}
			}
		}
		return nil, 0
	}
	all, many := most(one.Others)
	if one.Unseen > 0 {
		w.crowd.learn(one)
		if many == 0 { // of those that were looked at
			all, many = most(w.crowd.others)
			many *= one.Unseen / w.crowd.size()
		}
	}
	if many > 0 && many < 1 { // at some moments, none of them works
		for i := range all {
			all[i].weight *= many
		}
		all = append(all, part{own, 1 - many, false})
	}
	if many > 0 {
		return all
	}
	return view{{own, 1, false}}
}

// crowd is what the threads of a job were in over the last seconds, and how many in each, if at a moment too many of
// them are not looked at.
type crowd struct {
	others []sample.Other
	at     time.Duration // of the newest moment
	n      float64       // moments
}

const (
	maxCrowd = 64    // kinds of what they are in
	fewest   = 0.001 // threads; fewer are forgotten
)

// learn adds a moment.
func (c *crowd) learn(one *sample.Moment) {
	c.n++
	fresh := max(1/c.n, 1-math.Exp(-float64(one.At-c.at)/float64(crowdTime)))
	c.at = one.At
	for i := range c.others {
		c.others[i].Weight *= 1 - fresh
	}
	for _, o := range one.Others {
		more := o.Weight * fresh
		i := slices.IndexFunc(c.others, func(x sample.Other) bool { x.Weight = o.Weight; return x == o })
		switch {
		case i >= 0:
			c.others[i].Weight += more
		case len(c.others) < maxCrowd:
			o.Weight = more
			c.others = append(c.others, o)
		}
	}
	c.others = slices.DeleteFunc(c.others, func(o sample.Other) bool { return o.Weight < fewest })
}

// size is of how many threads it is.
func (c *crowd) size() (n float64) {
	for i := range c.others {
		n += c.others[i].Weight
	}
	return n
}

// doing is what another thread does that may be waited for. The first kind that there is counts.
type doing int

const (
	rests doing = iota // nothing
	works              // it works, or waits for storage or for another machine
	meets              // it waits for the other end of a connection within this machine, which may be one of the job
	spins              // it may only look for work
)

// waitsForOthers reports whether what a thread sleeps for may be other threads of the job. One that drives a GPU may
// sleep for a time while that works.
func waitsForOthers(why *Reason, drives bool) bool {
	switch why.Kind {
	case ForLock, ForPipe, ForChild, ForEvent:
		return true
	case ForTimer:
		return !drives
	case ForNetwork:
		return why.From == "" || local(why.From)
	}
	return false
}

// others returns what those do that do something of a kind, in equal parts, and how many they are.
func (m *Moments) others(list []sample.Other, what doing, among func(*sample.Other) bool) (all view, sum float64) {
	for i := range list {
		if o := &list[i]; among(o) {
			if p, does := m.doingOf(o); does == what {
				all = append(all, part{p, o.Weight, p.Kind == Other})
				sum += o.Weight
			}
		}
	}
	for i := range all {
		all[i].weight /= sum
	}
	return all, sum
}

func (m *Moments) doingOf(o *sample.Other) (p Piece, does doing) {
	if o.State == sample.StateReady {
		p = Piece{Kind: Work, Feeder: o.Reads, Fetch: fetchShare * o.System}
		if o.Spins {
			return p, spins
		}
		return p, works
	}
	p = m.pieceOf(&o.In)
	p.Feeder = o.Reads
	why := m.reasons.get(p.reason)
	switch {
	case p.Kind == Storage:
		return p, works
	case !fromAfar(why):
		return p, rests
	case local(why.From):
		return p, meets
	}
	return p, works
}

// fromAfar reports whether a reason is a wait for the other end of a connection.
func fromAfar(why Reason) bool { return why.Kind == ForNetwork && why.From != "" }

// pieceOf returns what a thread that does not run waits for.
func (m *Moments) pieceOf(in *sample.In) Piece {
	p := pause{kind: asleep, call: sample.CallOf(m.arch, in.Syscall)}
	other := func(why Reason) Piece { return Piece{Kind: Other, reason: m.reasons.id(why)} }
	switch {
	case in.Syscall == sample.UnknownSyscall:
		p.call = sample.OtherCall
	case in.State == sample.StateAsleep && p.call == sample.NoCall, p.onFile(in.File) && !in.Lock:
		return Piece{Kind: Storage} // a page of a mapped file
	}
	if in.State == sample.StateBlocked {
		switch {
		case in.Lock:
			return other(Reason{Kind: ForLock, Name: "lock in the kernel"})
		case p.call == sample.ForkCall:
			return other(Reason{Kind: ForChild, Name: "child process"})
		case p.call == sample.UnmapCall:
			return other(Reason{Kind: ForLock, Name: "memory map of the process"})
		case p.call != sample.IoctlCall:
			return Piece{Kind: Storage}
		}
	}
	if in.Syscall == sample.UnknownSyscall {
		return other(Reason{Kind: ForEvent, Name: "event"})
	}
	return other(reasonOf(&p, &sample.ThreadEvent{
		State: in.State, Syscall: in.Syscall, File: in.File, Detail: in.Detail, Peer: in.Peer,
	}))
}
