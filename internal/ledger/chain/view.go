package chain

import "github.com/stallspan/stallspan/internal/sample"

// viewOf returns what a leading thread was in at a moment. What it slept for is what those do that it waits for, in
// parts: each active one counts the same.
func (m *Moments) viewOf(one *sample.Moment, drives bool) view {
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
	for _, what := range kinds {
		for _, among := range []func(*sample.Other) bool{near, func(*sample.Other) bool { return true }} {
			if all := m.others(one.Others, what, among); len(all) > 0 {
				return all
			}
		}
	}
	return view{{own, 1, false}}
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

// others returns what those do that do something of a kind, in equal parts.
func (m *Moments) others(list []sample.Other, what doing, among func(*sample.Other) bool) (all view) {
	sum := 0.0
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
	return all
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

// fetchShare is the part of the time in the kernel of a thread that reads, in which it fetches data. The rest maps
// memory, copies and passes results on; no counter has them apart.
const fetchShare = 0.5

// fromAfar reports whether a reason is a wait for the other end of a connection.
func fromAfar(why Reason) bool { return why.Kind == ForNetwork && why.From != "" }

// pieceOf returns what a thread that does not run waits for.
func (m *Moments) pieceOf(in *sample.In) Piece {
	p := pause{kind: asleep, call: sample.CallOf(m.arch, in.Syscall)}
	other := func(why Reason) Piece { return Piece{Kind: Other, reason: m.reasons.id(why)} }
	switch {
	case in.Syscall == sample.UnknownSyscall:
		p.call = sample.OtherCall
	case in.State == sample.StateAsleep && p.call == sample.NoCall, p.onFile(in.File):
		return Piece{Kind: Storage} // a page of a mapped file
	}
	if in.State == sample.StateBlocked {
		switch {
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
