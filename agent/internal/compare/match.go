package compare

import (
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/window"
)

// identity distinguishes windows. Windows with the same identity are repeats.
type identity struct {
	kind     window.Kind
	name     string
	model    string
	hasEpoch bool
	epoch    int
}

func identityOf(w *explain.Report) identity {
	id := identity{kind: w.Kind, name: w.Name, model: w.Model, hasEpoch: w.Epoch != nil}
	if w.Epoch != nil {
		id.epoch = *w.Epoch
	}
	return id
}

type matched struct{ a, b *explain.Report }

// match finds the window of b for each window of a by identity, and repeats by their order. If both have a single
// window, these two match, whatever their names.
func match(a, b []*explain.Report) (both []matched, onlyA, onlyB []*explain.Report) {
	if len(a) == 1 && len(b) == 1 {
		return []matched{{a[0], b[0]}}, nil, nil
	}
	waiting := map[identity][]*explain.Report{}
	for _, w := range b {
		id := identityOf(w)
		waiting[id] = append(waiting[id], w)
	}
	taken := map[*explain.Report]bool{}
	for _, w := range a {
		id := identityOf(w)
		if len(waiting[id]) == 0 {
			onlyA = append(onlyA, w)
			continue
		}
		found := waiting[id][0]
		waiting[id] = waiting[id][1:]
		taken[found] = true
		both = append(both, matched{w, found})
	}
	for _, w := range b {
		if !taken[w] {
			onlyB = append(onlyB, w)
		}
	}
	return both, onlyA, onlyB
}

func names(windows []*explain.Report) (list []Name) {
	for _, w := range windows {
		list = append(list, Name{w.Kind, w.Label()})
	}
	return list
}

// whole compares the runs if both reports have one, and otherwise the sums of all windows.
func (c *Comparison) whole(a, b *explain.Report) *Pair {
	judged := 0
	for _, p := range c.Windows {
		if p.Change != Unknown && p.within == "" {
			judged++
		}
	}
	if judged == 0 {
		return nil
	}
	if a != nil && b != nil {
		p := pair(a, b)
		p.Kind, p.Label, p.LabelB = "", "The whole run", ""
		p.Finding = p.sentence()
		return p
	}
	return sum(c.Windows, judged)
}

// sum adds up the pairs that were not cut short, and their ledgers if all are of one kind.
func sum(pairs []*Pair, judged int) *Pair {
	total := &Pair{Label: totalLabel(judged)}
	var a, b *ledger
	alike := true
	for _, p := range pairs {
		if p.Change == Unknown || p.within != "" { // its epoch has that time, too
			continue
		}
		total.A.Duration += p.A.Duration
		total.B.Duration += p.B.Duration
		if a == nil && p.Parts != nil {
			a, b = &ledger{kind: p.Ledger}, &ledger{kind: p.Ledger}
			for _, part := range p.Parts {
				a.parts = append(a.parts, share{name: part.Part})
				b.parts = append(b.parts, share{name: part.Part})
			}
		}
		if alike = alike && a != nil && p.Ledger == a.kind; !alike {
			continue
		}
		for i, part := range p.Parts {
			a.parts[i].seconds += part.A
			b.parts[i].seconds += part.B
		}
	}
	if !alike {
		a, b = nil, nil
	}
	total.judge(a, b)
	return total
}
