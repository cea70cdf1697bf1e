package history

import (
	"slices"
	"sort"
	"time"
)

// axis is the time axis of one source. All columns of the source have the same rows.
type axis struct {
	used   bool
	last   time.Duration
	tiers  []tier
	groups map[groupKey]*group
	order  []*group // the same, by age
	turn   int      // index of the group that is likely next in a reading
}

// find returns the group of a key, or nil. Readings have devices in nearly the same order each time.
func (a *axis) find(key groupKey) *group {
	if a.turn < len(a.order) && a.order[a.turn].key == key {
		a.turn++
		return a.order[a.turn-1]
	}
	g := a.groups[key]
	if g != nil {
		a.turn = slices.Index(a.order, g) + 1
	}
	return g
}

func (a *axis) add(g *group) {
	a.groups[g.key] = g
	a.order = append(a.order, g)
}

func (a *axis) remove(key groupKey) {
	g := a.groups[key]
	delete(a.groups, key)
	a.order = slices.DeleteFunc(a.order, func(other *group) bool { return other == g })
}

// tier is a ring of row times. Rows are numbered from the first row of the axis. next is the number of the next row,
// and head is its place in the ring.
type tier struct {
	period time.Duration
	times  []time.Duration
	next   int
	head   int
}

// index returns the place of row n in the ring. It avoids a division, because a lookup calls it a dozen times.
func (t *tier) index(n int) int {
	i := t.head - (t.next - n)
	if i < 0 {
		i += len(t.times)
	}
	return i
}

func (t *tier) first() int             { return max(0, t.next-len(t.times)) }
func (t *tier) at(n int) time.Duration { return t.times[t.index(n)] }
func (t *tier) newest() time.Duration  { return t.at(t.next - 1) }
func (t *tier) oldest() time.Duration  { return t.at(t.first()) }
func (t *tier) covers(m time.Duration) bool {
	return t.next > 0 && t.oldest() <= m && m <= t.newest()
}

// takes reports whether the tier stores a row at m: the first one of each period.
func (t *tier) takes(m time.Duration) bool {
	return t.period == 0 || t.next == 0 || m/t.period > t.newest()/t.period
}

// after returns the number of the first row at or after m. The tier covers m.
func (t *tier) after(m time.Duration) int {
	first := t.first()
	rows := t.next - first
	// Rows are almost always evenly spaced: guess the place, and search only if the guess is wrong.
	span := t.newest() - t.oldest()
	if span > 0 {
		guess := first + int(float64(m-t.oldest())/float64(span)*float64(rows-1))
		for n := max(guess-1, first); n <= min(guess+2, t.next-1); n++ {
			if t.at(n) >= m && (n == first || t.at(n-1) < m) {
				return n
			}
		}
	}
	return first + sort.Search(rows, func(i int) bool { return t.at(first+i) >= m })
}

// append writes the present value of every column as a row at m into the tiers that take it.
func (a *axis) append(m time.Duration) {
	a.last = m
	for i := range a.tiers {
		t := &a.tiers[i]
		if !t.takes(m) {
			continue
		}
		t.times[t.head] = m
		for _, g := range a.order {
			g.put(i, t.head)
		}
		t.next++
		if t.head++; t.head == len(t.times) {
			t.head = 0
		}
	}
}

// next returns the number of the next row.
func (a *axis) next() int { return a.tiers[0].next }
