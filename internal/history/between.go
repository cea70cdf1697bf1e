package history

import "time"

// Delta is the growth of a quantity over an interval, in the unit of its Series.
type Delta struct {
	Low   float64 // lower bound
	Value float64 // best estimate: interpolates between the readings around both ends
	High  float64 // upper bound
	Reset bool    // the counter restarted, or its device came or went: growth that no reading saw is in neither bound
}

// Point is one end of an interval: a time on the monotonic clock and, for announced windows, the reading taken at that
// time. For other windows, Next may be a later reading, which stands in for rows that do not exist yet.
type Point struct {
	At   time.Duration
	Edge *Edge
	Next *Next
}

// Next is a reading that is in no row.
type Next struct {
	At   time.Duration
	Edge *Edge
}

// level is the value of a column at one time, with bounds from the readings before and after.
type level struct{ low, value, high float64 }

// Between returns how much a quantity grew between two points. The result is exact with an Edge at both ends, and else
// bounded by the readings around the ends. It reports false for an unknown quantity, an interval that is not completely
// stored, or one that ends before it starts.
//
// With readings a <= start <= b and c <= end <= d: Low = C(c)-C(b), High = C(d)-C(a), Value interpolates.
// Value(x,y) + Value(y,z) = Value(x,z), up to the rounding of float64.
func (h *History) Between(key Key, start, end Point) (Delta, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	a, c := h.column(key)
	if c == nil || end.At < start.At {
		return Delta{}, false
	}
	return a.between(key.Series, c, start, end)
}

// BetweenAll is Between for the first len(all) quantities of one device, from first on. It reports false if Between
// would for any of them. It is much cheaper than single calls.
func (h *History) BetweenAll(first Series, id string, start, end Point, all []Delta) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	a, g := h.find(first, id)
	if g == nil || end.At < start.At {
		return false
	}
	for i := range all {
		s := first + Series(i)
		var ok bool
		if all[i], ok = a.between(s, &g.columns[s.index()], start, end); !ok {
			return false
		}
	}
	return true
}

func (a *axis) between(s Series, c *column, start, end Point) (Delta, bool) {
	from, ok := a.level(s, c, start)
	if !ok {
		return Delta{}, false
	}
	to, ok := a.level(s, c, end)
	if !ok {
		return Delta{}, false
	}
	appeared := !c.whole && start.At < c.since && c.since <= end.At && !start.Edge.has(c)
	// A GPU that is missing in the edge may only be late; its resets show whether it is gone.
	gone := end.Edge != nil && !end.Edge.has(c) && s != GPUBusyTime
	return Delta{
		Low:   max(0, to.low-from.high),
		Value: max(0, to.value-from.value),
		High:  max(0, to.high-from.low),
		Reset: appeared || gone || c.resets.within(start.At, end.At),
	}, true
}

func (h *History) column(key Key) (*axis, *column) {
	a, g := h.find(key.Series, key.ID)
	if g == nil {
		return a, nil
	}
	return a, &g.columns[key.Series.index()]
}

// find returns the columns of a device, nil for one that is not known, and their axis.
func (h *History) find(s Series, id string) (*axis, *group) {
	a := &h.axes[s.kind().axis()]
	return a, a.groups[groupKey{s.kind(), id}]
}

// level returns the value of a column at p, from the finest tier that covers it. Before the first reading of a device
// the value is zero.
func (a *axis) level(s Series, c *column, p Point) (level, bool) {
	if v, ok := p.Edge.value(c); ok {
		return level{v, v, v}, true
	}
	if p.At < c.since && s.kind() == kindPeer { // the axis begins with the first peer of all
		return level{}, true
	}
	for i := range c.tiers {
		t := &a.tiers[i]
		if p.At < c.since && t.covers(p.At) {
			return c.early(s, p.At), true
		}
		if c.tiers[i].covers(t, p.At) {
			return c.tiers[i].level(t, p.At), true
		}
	}
	if !a.used || p.At <= a.last {
		return level{}, false
	}
	if v, ok := p.Next.value(c); ok && p.Next.At > a.last {
		share := float64(p.At-a.last) / float64(p.Next.At-a.last)
		return level{c.value, c.value + (v-c.value)*min(1, share), v}, true
	}
	return a.beyond(s, c, p)
}

func (n *Next) value(c *column) (float64, bool) {
	if n == nil {
		return 0, false
	}
	return n.Edge.value(c)
}

// Lag is how long to wait for a source with its own axis: a GPU's driver may return its samples seconds late. Beyond
// Lag the source counts as silent.
const Lag = 6 * time.Second

// beyond returns the value of a column after the last row. A GPU is extrapolated with its last slope. A device that was
// gone when the edge was taken keeps its value.
func (a *axis) beyond(s Series, c *column, p Point) (level, bool) {
	gap := p.At - a.last
	if s == GPUBusyTime && gap <= Lag {
		return level{c.value, c.value + c.slope(&a.tiers[0])*gap.Seconds(), c.value + gap.Seconds()}, true
	}
	return level{c.value, c.value, c.value}, p.Edge != nil || p.Next != nil
}

// slopeTime is the time over which the slope of a GPU's busy time is taken: many steps of a training loop.
const slopeTime = 2 * time.Second

// slope returns the busy share of a GPU in the last rows of the finest tier.
func (c *column) slope(t *tier) float64 {
	n := t.next - 1
	first := n
	for first > t.first() && t.at(n)-t.at(first) < slopeTime {
		first--
	}
	if first == n {
		return 0
	}
	step := (t.at(n) - t.at(first)).Seconds()
	return max(0, min(1, (c.tiers[0].at(t, n)-c.tiers[0].at(t, first))/step))
}

func (r *rows) level(t *tier, m time.Duration) level { return r.between(t, t.after(m), m) }

// between is level for the first row n at or after m.
func (r *rows) between(t *tier, n int, m time.Duration) level {
	high := r.at(t, n)
	if t.at(n) == m || n == t.first() {
		return level{high, high, high}
	}
	low := r.at(t, n-1)
	share := float64(m-t.at(n-1)) / float64(t.at(n)-t.at(n-1))
	return level{low, low + (high-low)*share, high}
}

func (r *rows) at(t *tier, n int) float64 {
	if n < r.from {
		return 0
	}
	if r.size == len(t.times) {
		return r.values[t.index(n)*r.stride]
	}
	return r.get(t.index(max(n, t.next-r.size))) // older values are constant
}

// Step is the interval between two neighbouring readings and the growth in it.
type Step struct {
	Start, End time.Duration
	Grown      float64
}

// maxSteps bounds the result of Steps. Columns are cumulative, so that leaving out rows only makes steps longer.
const maxSteps = 1024

// Steps divides an interval into the steps of the finest tier that covers it, with exact ends where the points have an
// Edge. Steps of a long interval are about a thousandth of it. Use Steps to find when something happened, and Between
// for the total.
func (h *History) Steps(key Key, start, end Point) []Step {
	h.mu.RLock()
	defer h.mu.RUnlock()
	a, c := h.column(key)
	if c == nil || end.At <= start.At {
		return nil
	}
	from, okFrom := a.level(key.Series, c, start)
	to, okTo := a.level(key.Series, c, end)
	if !okFrom || !okTo {
		return nil
	}
	at, value := start.At, from.value
	var steps []Step
	if r, t := a.finest(c, start.At); r != nil {
		first := t.after(start.At)
		last := t.next
		if t.covers(end.At) {
			last = t.after(end.At)
		}
		stride := (last-first)/maxSteps + 1
		steps = make([]Step, 0, (last-first)/stride+2)
		for n := first; n < last; n += stride {
			if m, v := t.at(n), r.at(t, n); m > at && m < end.At && v >= value {
				steps = append(steps, Step{at, m, v - value})
				at, value = m, v
			}
		}
	}
	return append(steps, Step{at, end.At, max(0, to.value-value)})
}

// finest returns the finest tier that covers m.
func (a *axis) finest(c *column, m time.Duration) (*rows, *tier) {
	for i := range c.tiers {
		if c.tiers[i].covers(&a.tiers[i], m) {
			return &c.tiers[i], &a.tiers[i]
		}
	}
	return nil, nil
}

const (
	minGap  = 3 * time.Second // the sampling interval is at most a second
	gapRows = 3               // consecutive missing rows of a tier
)

// Unread returns how much of an interval lies in gaps without a reading of s, because the program was stopped or not
// scheduled. A suspension is not a gap, because the monotonic clock stops. A gap is at least three seconds and three
// rows of the tier long.
func (h *History) Unread(s Series, start, end time.Duration) (unread time.Duration) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	a := &h.axes[s.kind().axis()]
	if a.used && end-a.last >= minGap {
		unread = end - max(start, a.last)
	}
	for i := range a.tiers {
		t := &a.tiers[i]
		if !t.covers(start) {
			continue
		}
		shortest := max(minGap, gapRows*t.period)
		for n := max(t.after(start), t.first()+1); n < t.next; n++ {
			from := max(start, t.at(n-1))
			if from >= end {
				break
			}
			if t.at(n)-t.at(n-1) >= shortest {
				unread += min(end, t.at(n)) - from
			}
		}
		break
	}
	return unread
}

// EachDisk yields, for each present leaf disk, the bytes that it read, the bytes that it read and wrote, and the growth
// of its time in queue (seconds) between two points.
func (h *History) EachDisk(from, to Point, yield func(disk string, read, moved, inQueue float64)) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	a := &h.axes[diskAxis]
	for key, g := range a.groups {
		if key.kind != kindDisk || g.gone {
			continue
		}
		grown := func(s Series) float64 {
			d, _ := a.between(s, &g.columns[s.index()], from, to)
			return d.Value
		}
		read := grown(DiskReadBytes)
		yield(key.id, read, read+grown(DiskWriteBytes), grown(DiskTimeInQueue))
	}
}
