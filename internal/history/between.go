package history

import "time"

// Delta is how much a quantity grew over an interval, in the unit of its Series.
type Delta struct {
	Low   float64 // certainly inside
	Value float64 // best estimate: the two edges interpolated between the readings around them
	High  float64 // possibly inside
	Reset bool    // the counter began again, or its device came or went: what it counted unseen is in neither bound
}

// Point is one end of an interval: a moment on the monotonic clock and, for a window that was announced, the reading
// taken at that very moment. For a window that was not, Next may be a later reading: it stands for the rows that are
// yet to come.
type Point struct {
	At   time.Duration
	Edge *Edge
	Next *Next
}

// Next is a reading that was taken at a moment and is in no row.
type Next struct {
	At   time.Duration
	Edge *Edge
}

// level is a column's height at one moment, with the readings on both sides of it.
type level struct{ low, value, high float64 }

// Between says how much a quantity grew from one point to another: with an Edge at both ends exactly, else within
// the bounds that the readings around the ends give. It is false where the quantity was never seen, where the
// interval reaches outside of what is kept, or where it ends before it starts.
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

// BetweenAll is Between for as many quantities of one device as all has room for, beginning with first. It is false where
// it would be for any of them, and costs much less than to ask one by one.
func (h *History) BetweenAll(first Series, id string, start, end Point, all []Delta) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	a := &h.axes[first.kind().axis()]
	g := a.groups[groupKey{first.kind(), id}]
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
	came := !c.whole && start.At < c.since && c.since <= end.At && !start.Edge.has(c)
	left := end.Edge != nil && !end.Edge.has(c) && s != GPUBusyTime // which may only be late; its marks tell
	return Delta{
		Low:   max(0, to.low-from.high),
		Value: max(0, to.value-from.value),
		High:  max(0, to.high-from.low),
		Reset: came || left || c.marks.within(start.At, end.At),
	}, true
}

func (h *History) column(key Key) (*axis, *column) {
	kind := key.Series.kind()
	a := &h.axes[kind.axis()]
	g := a.groups[groupKey{kind, key.ID}]
	if g == nil {
		return a, nil
	}
	return a, &g.columns[key.Series.index()]
}

// level finds a column's height at p, on the finest tier that still holds that moment. Before a device was first
// seen its column stands at zero.
func (a *axis) level(s Series, c *column, p Point) (level, bool) {
	if v, ok := p.Edge.value(c); ok {
		return level{v, v, v}, true
	}
	for i := range c.tiers {
		t := &a.tiers[i]
		if !t.covers(p.At) {
			continue
		}
		if p.At < c.since {
			return level{}, true
		}
		return c.tiers[i].level(t, p.At), true
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

// Lag is for how long a source with an axis of its own is waited for: a GPU's readings come up to a second late. One
// that lags more has nothing to tell any more.
const Lag = 2 * time.Second

// beyond is a column's height after its axis's last row: of a GPU what it will be if the GPU goes on as in its last
// step, of a device that was gone when an edge was taken what it was.
func (a *axis) beyond(s Series, c *column, p Point) (level, bool) {
	gap := p.At - a.last
	if s == GPUBusyTime && gap <= Lag {
		return level{c.value, c.value + c.slope(&a.tiers[0])*gap.Seconds(), c.value + gap.Seconds()}, true
	}
	return level{c.value, c.value, c.value}, p.Edge != nil || p.Next != nil
}

// slope is how busy a GPU was in the last step of the finest tier, 0 to 1.
func (c *column) slope(t *tier) float64 {
	n := t.next - 1
	if n <= t.first() {
		return 0
	}
	step := (t.at(n) - t.at(n-1)).Seconds()
	return max(0, min(1, (c.tiers[0].at(t, n)-c.tiers[0].at(t, n-1))/step))
}

func (r *rows) level(t *tier, m time.Duration) level {
	n := t.after(m)
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
	if len(r.values) == len(t.times) {
		return r.values[t.index(n)]
	}
	return r.values[t.index(max(n, t.next-len(r.values)))%len(r.values)] // what is older is as if it had not grown before
}

// Step is a stretch between two neighbouring readings and what a quantity grew in it.
type Step struct {
	Start, End time.Duration
	Grown      float64
}

// mostSteps bounds what Steps gives. As columns are cumulative, leaving out rows makes the steps longer and nothing
// else.
const mostSteps = 1024

// Steps gives the stretches that make up an interval, on the finest tier that covers all of it, with exact ends
// where the points carry an Edge. A long interval has longer ones, about a thousandth of it. It is for finding where
// in an interval something happened; what happened in all is Between's to say.
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
		stride := (last-first)/mostSteps + 1
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

// finest is the finest tier that reaches back to m.
func (a *axis) finest(c *column, m time.Duration) (*rows, *tier) {
	for i := range c.tiers {
		if a.tiers[i].covers(m) {
			return &c.tiers[i], &a.tiers[i]
		}
	}
	return nil, nil
}
