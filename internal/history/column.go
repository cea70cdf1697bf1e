package history

import "time"

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
	if k.falls() {
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
