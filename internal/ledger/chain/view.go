package chain

import (
	"slices"

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
	if one.At-w.tookAt >= asksFor {
		w.took = 0
	}
	if why.Kind == ForPipe {
		w.took, w.tookAt = w.took+1, one.At
	}
	if !waitsForOthers(&why, drives || w.took >= minLooks) {
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
			mean, size := w.crowd.mean()
			all, many = most(mean)
			many *= one.Unseen / size
		}
	}
	if many == 0 {
		return view{{own, 1, false}}
	}
	if many < 1 { // at some moments, none of them works
		for i := range all {
			all[i].weight *= many
		}
		all = append(all, part{own, 1 - many, false})
	}
	return all
}

// add adds a part, or makes the same one larger.
func (v view) add(p part) view {
	for i := range v {
		if v[i].Piece == p.Piece && v[i].afar == p.afar {
			v[i].weight += p.weight
			return v
		}
	}
	return append(v, p)
}

// crowd is what was seen of the threads of a job at the newest moments, if at each too many of them were not looked at:
// as many moments as it takes to see some that run.
type crowd struct {
	moments []sample.Moment // in the order of time
	seen    int             // that run
	buffer  []sample.Other
}

// maxCrowd bounds the moments of a crowd.
const maxCrowd = 256

// learn adds a moment, and drops those that are not needed any more.
func (c *crowd) learn(one *sample.Moment) {
	kept := *one
	kept.Others = slices.Clone(one.Others)
	c.moments = append(c.moments, kept)
	c.seen += countReady(one)
	for len(c.moments) > 1 {
		oldest := &c.moments[0]
		n := countReady(oldest)
		if c.seen-n < crowdSeen && one.At-oldest.At < crowdTime && len(c.moments) <= maxCrowd {
			break
		}
		c.seen -= n
		c.moments = c.moments[1:]
	}
}

// countReady is of how many kinds the threads are that run at a moment.
func countReady(one *sample.Moment) (n int) {
	for i := range one.Others {
		if one.Others[i].State == sample.StateReady {
			n++
		}
	}
	return n
}

// mean is what the threads were in on average, and of how many it is. It is valid until the next call.
func (c *crowd) mean() (all []sample.Other, size float64) {
	all = c.buffer[:0]
	for i := range c.moments {
		for _, o := range c.moments[i].Others {
			o.Weight /= float64(len(c.moments))
			size += o.Weight
			all = append(all, o)
		}
	}
	c.buffer = all
	return all, size
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
// sleep for a time while that works, and one that takes batches from workers in place of a GPU.
func waitsForOthers(why *Reason, sleeps bool) bool {
	switch why.Kind {
	case ForLock, ForPipe, ForChild, ForEvent:
		return true
	case ForTimer:
		return !sleeps
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
				all = all.add(part{p, o.Weight, p.Kind == Other})
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
	case in.State == sample.StateStopped:
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
	if in.Syscall == sample.UnknownSyscall && in.State != sample.StateStopped {
		return other(Reason{Kind: ForEvent, Name: "event"})
	}
	return other(reasonOf(&p, &sample.ThreadEvent{
		State: in.State, Syscall: in.Syscall, File: in.File, Detail: in.Detail, Peer: in.Peer,
	}))
}
