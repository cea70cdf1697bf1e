package history

import (
	"cmp"
	"slices"
	"sort"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Edge is a reading that was taken when a window started or ended. It is stored with the window, not in the rings, so
// that a thousand windows a minute displace no rows. It takes 16 bytes for each column.
type Edge struct {
	values    []edgeValue // by slot
	latencies []latency
}

type edgeValue struct {
	slot  uint32
	value float64
}

// NewEdge returns an empty edge with room for all columns.
func (h *History) NewEdge() *Edge {
	h.mu.RLock()
	defer h.mu.RUnlock()
	columns := 0
	for i := range h.axes {
		for _, g := range h.axes[i].order {
			columns += len(g.columns)
		}
	}
	return &Edge{values: make([]edgeValue, 0, columns)}
}

// Observe adds the reading of one source to an edge. A device without a row is left out; Between then uses its first
// row. A complete Edge is immutable and may be shared.
func (h *History) Observe(e *Edge, s *sample.Sample) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	for id := range h.axes {
		if !contains(axisID(id), s) {
			continue
		}
		a := &h.axes[id]
		h.each(axisID(id), s, func(key groupKey, values [maxColumns]float64, reset time.Duration) {
			e.observe(a, key, values, reset)
		})
	}
	if len(s.Latencies) > 0 {
		e.latencies = latenciesOf(s)
	}
	e.sort()
}

// observe adds a device's reading. A device without columns is left out.
func (e *Edge) observe(a *axis, key groupKey, values [maxColumns]float64, reset time.Duration) {
	g := a.groups[key]
	if g == nil || g.gone {
		return
	}
	for i := range g.columns {
		c := &g.columns[i]
		grown, _ := key.kind.growth(c.raw, values[i], reset != g.reset)
		e.values = append(e.values, edgeValue{c.slot, c.value + grown})
	}
}

func (e *Edge) sort() {
	slices.SortFunc(e.values, func(x, y edgeValue) int { return cmp.Compare(x.slot, y.slot) })
}

// Clone returns a copy to which readings can be added.
func (e *Edge) Clone() *Edge { return &Edge{slices.Clone(e.values), e.latencies} }

func (e *Edge) value(c *column) (float64, bool) {
	if e == nil {
		return 0, false
	}
	i := sort.Search(len(e.values), func(i int) bool { return e.values[i].slot >= c.slot })
	if i == len(e.values) || e.values[i].slot != c.slot {
		return 0, false
	}
	return e.values[i].value, true
}

func (e *Edge) has(c *column) bool {
	_, ok := e.value(c)
	return ok
}

// Lags reports whether a working GPU has no reading yet for the time of an edge.
func (h *History) Lags(p Point) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	a := &h.axes[gpuAxis]
	if !a.used || a.last >= p.At || p.At-a.last > Lag {
		return false
	}
	for key, g := range a.groups {
		if key.kind == kindGPU && !g.gone && !p.Edge.has(&g.columns[0]) {
			return true
		}
	}
	return false
}

// Level returns the cumulative value of a quantity at a point, in the unit of its Series. Only differences have a
// meaning. It reports false for a device that was gone by then.
func (h *History) Level(key Key, p Point) (float64, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	a, g := h.find(key.Series, key.ID)
	if g == nil {
		return 0, false
	}
	c := &g.columns[key.Series.index()]
	if g.gone && p.At > g.goneSince && !p.Edge.has(c) {
		return 0, false
	}
	l, ok := a.level(key.Series, c, p)
	return l.value, ok
}

// Levels is Level for the first len(all) quantities of one device, from first on. Those that Level does not know are 0.
// It reports whether Level knows the first. It is much cheaper than single calls.
func (h *History) Levels(first Series, id string, p Point, all []float64) (known bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	clear(all)
	a, g := h.find(first, id)
	if g == nil {
		return false
	}
	columns := g.columns[first.index():][:len(all)]
	left := g.gone && p.At > g.goneSince
	if p.Edge == nil && !left && a.row(columns, p.At, all) {
		return true
	}
	for i := range columns {
		c := &columns[i]
		if left && !p.Edge.has(c) {
			continue
		}
		l, ok := a.level(first+Series(i), c, p)
		if ok {
			all[i] = l.value
		}
		known = known || ok && i == 0
	}
	return known
}

// row sets the values of columns of one group at a time that the finest tier covers, which is searched once. It reports
// false if it does not cover it for all of them.
func (a *axis) row(columns []column, at time.Duration, all []float64) bool {
	t := &a.tiers[0]
	for i := range columns {
		if c := &columns[i]; at < c.since || !c.tiers[0].covers(t, at) {
			return false
		}
	}
	n := t.after(at)
	for i := range columns {
		all[i] = columns[i].tiers[0].between(t, n, at).value
	}
	return true
}
