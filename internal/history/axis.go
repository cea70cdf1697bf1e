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

// begin returns the number of the first row at or after m, by looking back from the newest one.
func (t *tier) begin(m time.Duration) int {
	n := t.next
	for n > t.first() && t.at(n-1) >= m {
		n--
	}
	return n
}

// append writes the present value of every column as a row at m into the tiers that take it.
func (a *axis) append(m time.Duration) {
	a.last = m
	for i := range a.tiers {
		t := &a.tiers[i]
		if !t.takes(m) {
			continue
		}
		for _, g := range a.order {
			g.put(i, t.head)
		}
		t.push(m)
	}
}

// push adds the time of a row whose values are at the head.
func (t *tier) push(m time.Duration) {
	t.times[t.head] = m
	t.next++
	if t.head++; t.head == len(t.times) {
		t.head = 0
	}
}

// next returns the number of the next row.
func (a *axis) next() int { return a.tiers[0].next }

// group holds the columns of one device.
type group struct {
	key       groupKey
	columns   []column
	tiers     int  // on which it is stored
	seen      bool // in the reading that is appended now
	gone      bool // missing in the readings since goneSince
	goneSince time.Duration
	reset     time.Duration // Stamp.Mono of Disk.Reset
	period    time.Duration // sample.GPU.Period
	averages  bool          // sample.AveragesBusy, in any row
	recalled  bool          // with a past: see recall
}

// column is one quantity. Its value grows by the growth of the raw counter, across restarts.
type column struct {
	// Each reading needs these: they share a line of the cache.
	raw   float64 // the counter's last reading
	value float64 // starts at zero with the first reading
	begun bool
	whole bool   // the device has counted from zero since then, so that nothing is missing before
	slot  uint32 // unique in its History, for Edge

	resets *resets // nil for none
	tiers  []rows
	since  time.Duration
	zero   time.Duration // when the value was 0, of a column with a past
	first  float64       // the value at since, of a column with a past; else 0
}

// rows are the values of a column on one tier. Those before from are older than the column. There may be fewer values
// than times; their number divides that of the times, so that both rings wrap together. The columns of a group share
// one slice, row by row, because they are written together: values begins with the column's own first value, and has
// another one after each stride.
type rows struct {
	values       []float64
	stride, size int // columns of the group, and values of this one
	from         int
	partial      bool // values that are not here are dropped, and not constant
}

// newRows returns the rows of some columns on a tier.
func newRows(columns, size int) []rows {
	all, shared := make([]rows, columns), make([]float64, columns*size)
	for c := range all {
		all[c] = rows{values: shared[c:], stride: columns, size: size}
	}
	return all
}

// covers reports whether there are rows around m.
func (r *rows) covers(t *tier, m time.Duration) bool {
	if !r.partial {
		return t.covers(m)
	}
	return t.covers(m) && m >= t.at(min(max(t.first(), t.next-r.size), t.next-1))
}

// put writes the value for place i in the ring of the tier.
func (r *rows) put(i int, value float64) { r.values[i%r.size*r.stride] = value }

// get returns the value for place i in the ring of the tier.
func (r *rows) get(i int) float64 { return r.values[i%r.size*r.stride] }

func newGroup(a *axis, key groupKey, tiers int, slot uint32, at time.Duration) *group {
	g := &group{key: key, columns: make([]column, key.kind.columns()), tiers: tiers}
	for i := range g.columns {
		g.columns[i].slot, g.columns[i].since = slot+uint32(i), at
	}
	for t := range tiers {
		fresh := newRows(len(g.columns), key.kind.rows(len(a.tiers[t].times)))
		for i, r := range fresh {
			r.from, r.partial = a.tiers[t].next, key.kind.ofMount()
			g.columns[i].tiers = append(g.columns[i].tiers, r)
		}
	}
	return g
}

// put writes the present value of every column as a row for place i in the ring of a tier.
func (g *group) put(tier, i int) {
	if tier >= len(g.columns[0].tiers) {
		return
	}
	r := &g.columns[0].tiers[tier]
	row := r.values[i%r.size*r.stride:]
	for c := range g.columns {
		row[c] = g.columns[c].value
	}
}

// advance takes the next reading of the counter, in the unit of its Series.
func (c *column) advance(k kind, raw float64, restarted bool, at time.Duration) {
	if !c.begun {
		c.begun, c.raw = true, raw
		return
	}
	grown, reset := k.growth(c.raw, raw, restarted)
	if reset {
		c.noteReset(at)
	}
	c.value += grown
	c.raw = raw
}

// growth returns how far a counter grew between two readings, and whether it restarted at zero in between. Then only
// what it counted since the restart is known.
func growth(from, to float64, restarted bool) (grown float64, reset bool) {
	switch {
	case to >= from && !restarted:
		return to - from, false
	case to > 0:
		return to, true
	default: // negative, or not a number
		return 0, true
	}
}

// growth is as the function of that name, for a quantity of this kind: one that may fall has no restarts.
func (k kind) growth(from, to float64, restarted bool) (grown float64, reset bool) {
	if k.is(falls) {
		return to - from, false
	}
	return growth(from, to, restarted)
}

// resets are the newest restarts and gaps of a column. Older ones were dropped up to before.
type resets struct {
	at     [8]time.Duration
	n      int
	before time.Duration
}

// noteReset stores a restart, or a gap.
func (c *column) noteReset(at time.Duration) {
	if c.resets == nil {
		c.resets = &resets{}
	}
	c.resets.add(at)
}

func (r *resets) add(at time.Duration) {
	if r.n == len(r.at) {
		r.before = r.at[0]
		copy(r.at[:], r.at[1:])
		r.n--
	}
	r.at[r.n] = at
	r.n++
}

// within reports whether a reset lies in (start, end]. It reports true where resets of that time were dropped.
func (r *resets) within(start, end time.Duration) bool {
	if r == nil {
		return false
	}
	if r.before > 0 && start < r.before {
		return true
	}
	for _, at := range r.at[:r.n] {
		if start < at && at <= end {
			return true
		}
	}
	return false
}
