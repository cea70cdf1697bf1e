package ledger

import (
	"github.com/stallspan/stallspan/internal/ledger/chain"
)

// names remembers what a target's leading thread waited for, as other, in the last minutes.
type names struct {
	all []named
}

type named struct {
	chain.Reason
	time float64 // s; old evidence fades
}

const (
	maxNames  = 32
	fading    = 0.998 // weight of what was learned before a block: blocks of a second fade in minutes
	tooLittle = 1e-4  // s
)

// learn uses a block that cannot change any more.
func (n *names) learn(b *block) {
	kept := n.all[:0]
	for _, known := range n.all {
		if known.time *= fading; known.time > tooLittle {
			kept = append(kept, known)
		}
	}
	n.all = kept
	for i := range b.pieces {
		p := &b.pieces[i]
		if p.Kind == chain.Other {
			n.add(b.timeline.Reason(p), (p.To-p.From).Seconds()*b.idle[b.classOf(p)])
		}
	}
}

func (n *names) add(why chain.Reason, time float64) {
	least := 0
	for i := range n.all {
		if n.all[i].Reason == why {
			n.all[i].time += time
			return
		}
		if n.all[i].time < n.all[least].time {
			least = i
		}
	}
	switch {
	case time <= 0:
	case len(n.all) < maxNames:
		n.all = append(n.all, named{why, time})
	case n.all[least].time < time:
		n.all[least] = named{why, time}
	}
}

// of returns the name with the most time of a kind.
func (n *names) of(kind chain.ReasonKind) (name string) {
	most := 0.0
	for _, known := range n.all {
		if known.Kind == kind && known.time > most {
			name, most = known.Name, known.time
		}
	}
	return name
}
