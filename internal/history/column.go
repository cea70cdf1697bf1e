package history

import "time"

// group holds the columns of one device.
type group struct {
	columns   []column
	seen      bool // in the reading that is being appended
	gone      bool // since goneSince the source has not told of it
	goneSince time.Duration
	reset     time.Duration // Stamp.Mono of Disk.Reset
}

// column is one quantity, made monotone: value grows by what the raw counter grew, through wraps and resets.
type column struct {
	slot  uint32 // unique in its History, for Edge
	since time.Duration
	begun bool
	whole bool    // it is known from the device's own beginning, so nothing is missing before since
	raw   float64 // the counter's last reading
	value float64 // what is kept: starts at zero with the first reading
	tiers []rows
	marks marks
}

// rows are a column's values on one tier; those before from belong to a time when the column did not exist. There may be
// fewer than the tier has times: a part of them, so that both rings come round together.
type rows struct {
	values []float64
	from   int
}

// put writes the value of the row that takes place i in the tier's ring.
func (r *rows) put(i int, value float64) { r.values[i%len(r.values)] = value }

func newGroup(a *axis, key groupKey, tiers int, slot uint32, at time.Duration) *group {
	g := &group{columns: make([]column, key.kind.columns())}
	for i := range g.columns {
		c := &g.columns[i]
		c.slot, c.since = slot+uint32(i), at
		c.tiers = make([]rows, tiers)
		for t := range c.tiers {
			c.tiers[t] = rows{values: make([]float64, key.kind.rows(len(a.tiers[t].times))), from: a.tiers[t].next}
		}
	}
	return g
}

// advance takes the next reading of the counter, in the unit of its Series.
func (c *column) advance(raw float64, restarted bool, at time.Duration) {
	if !c.begun {
		c.begun, c.raw = true, raw
		return
	}
	grown, reset := growth(c.raw, raw, restarted)
	if reset {
		c.mark(at)
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

func (c *column) mark(at time.Duration) { c.marks.add(at) }

// marks remembers when a column was interrupted: the newest few, and the time up to which older ones were dropped.
type marks struct {
	at     [8]time.Duration
	n      int
	before time.Duration
}

func (m *marks) add(at time.Duration) {
	if m.n == len(m.at) {
		m.before = m.at[0]
		copy(m.at[:], m.at[1:])
		m.n--
	}
	m.at[m.n] = at
	m.n++
}

// within says whether an interruption lies in (start, end]. Where it is too long ago to tell, it says yes.
func (m *marks) within(start, end time.Duration) bool {
	if m.before > 0 && start < m.before {
		return true
	}
	for _, at := range m.at[:m.n] {
		if start < at && at <= end {
			return true
		}
	}
	return false
}
