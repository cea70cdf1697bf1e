package history

import (
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// details are the quantities that one GPU reports once a second. They have a time axis for each GPU, because each is
// queried at its own time. They reach as far back as other columns with a tenth of the rows.
type details struct {
	at     time.Duration // of the newest reading
	tiers  []tier
	states [Details]detailState
	rows   [Details][]rows // by tier
	limits GPULimits
}

// detailState is the state of one quantity.
type detailState struct {
	raw   float64       // newest value
	at    time.Duration // time of raw; has no meaning before begun
	since time.Duration // start of the time without a gap
	begun bool
	value float64 // integral over seconds, or the growth of a counter
}

// hold is how long a quantity is assumed to keep its last value.
const hold = 5 * time.Second

const (
	detailEvery   = 10 // details are so many times rarer than other readings
	minDetailRows = 32 // rows of a tier
)

// detailShare is the share of the memory for details on all tiers. Further GPUs use the finest tier only.
const detailShare = 0.1

func detailTier(t Tier) Tier {
	return Tier{Period: t.Period * detailEvery, Rows: max(t.Rows/detailEvery, minDetailRows)}
}

// detailSize returns the memory of one GPU's details on the first tiers.
func (h *History) detailSize(tiers int) (size int) {
	for _, t := range h.config.Tiers[:tiers] {
		size += 8 * detailTier(t).Rows * (1 + int(Details))
	}
	return size
}

// detail adds the details of a reading. The caller holds h.mu.
func (h *History) detail(s *sample.Sample) {
	for i := range s.GPUDetails {
		reading := &s.GPUDetails[i]
		g := slices.IndexFunc(s.GPUs, func(g sample.GPU) bool { return g.ID == reading.GPU && g.Status == sample.GPUWorks })
		if g < 0 || reading.At < 0 || len(reading.XIDs) > 0 && reading.Values.Empty() {
			continue // errors are reported at once, between two readings of the rest
		}
		d := h.details[reading.GPU]
		if d == nil {
			d = h.openDetails(reading)
		}
		if d != nil && (reading.At > d.at || d.tiers[0].next == 0) {
			d.advance(&s.GPUs[g], reading)
		}
	}
}

// openDetails allocates the details of a GPU, or returns nil without room. It drops GPUs whose last row is too old.
func (h *History) openDetails(reading *sample.GPUDetail) *details {
	if h.refused.still(refusedDetails(reading.GPU)) {
		return nil
	}
	for id, old := range h.details {
		if reading.At-old.at > h.horizon(len(old.tiers)) {
			h.bytes -= h.detailSize(len(old.tiers))
			h.detailBytes -= h.detailSize(len(old.tiers))
			delete(h.details, id)
			clear(h.refused.known)
		}
	}
	tiers := len(h.config.Tiers)
	if size, limit := h.detailSize(tiers), float64(h.config.MaxBytes); float64(h.detailBytes+size) > detailShare*limit ||
		float64(h.bytes+size) > fullShare*limit {
		tiers = 1
	}
	size := h.detailSize(tiers)
	if h.bytes+size > h.config.MaxBytes {
		h.refused.add(refusedDetails(reading.GPU))
		return nil
	}
	h.bytes, h.detailBytes = h.bytes+size, h.detailBytes+size
	d := &details{tiers: make([]tier, tiers)}
	for i := range d.tiers {
		t := detailTier(h.config.Tiers[i])
		d.tiers[i] = tier{period: t.Period, times: make([]time.Duration, t.Rows)}
		for c, r := range newRows(len(d.rows), t.Rows) {
			d.rows[c] = append(d.rows[c], r)
		}
	}
	if h.details == nil {
		h.details = map[string]*details{}
	}
	h.details[reading.GPU] = d
	return d
}

// refusedDetails is the key by which the details of a GPU are refused. They are no group of columns.
func refusedDetails(gpu string) groupKey { return groupKey{kindNone, gpu} }

// advance adds a reading, which is later than the previous one.
func (d *details) advance(g *sample.GPU, reading *sample.GPUDetail) {
	step := reading.At - d.at
	first := d.tiers[0].next == 0
	for q := range Details {
		value, ok := q.of(g, &reading.Values)
		d.states[q].advance(reading.At, step, value, ok, q >= ThrottledPower, first)
	}
	d.limits.note(g, &reading.Values)
	d.at = reading.At
	for i := range d.tiers {
		t := &d.tiers[i]
		if !t.takes(reading.At) {
			continue
		}
		t.times[t.head] = reading.At
		for q := range Details {
			d.rows[q][i].put(t.head, d.states[q].value)
		}
		t.next++
		if t.head++; t.head == len(t.times) {
			t.head = 0
		}
	}
}

// advance adds the value of one quantity, step after the previous reading. ok is false without a value.
func (s *detailState) advance(at, step time.Duration, value float64, ok, counter, first bool) {
	known := s.begun && !first && step <= hold && at-s.at <= hold
	switch {
	case ok && known && counter:
		grown, _ := growth(s.raw, value, false)
		s.value += min(grown, (at - s.at).Seconds()) // at most one second per second
	case ok && known:
		s.value += value * step.Seconds()
	case ok && !counter && !first && step <= hold:
		s.value += value * step.Seconds()
		s.since = at - step
	case ok:
		s.since = at
	case known && !counter:
		s.value += s.raw * step.Seconds()
	case !known:
		s.since = at // a mean leaves out the time before
	}
	if ok {
		s.raw, s.at, s.begun = value, at, true
	}
}

func (l *GPULimits) note(g *sample.GPU, v *sample.GPUValues) {
	l.Index = g.Index
	if g.Has&sample.HasMemory != 0 {
		l.Memory = g.MemoryTotal
	}
	if limit, ok := v.Get(sample.GPUPowerLimit); ok && limit > 0 && limit < maxValue {
		l.Power = limit
	}
	if limit, ok := v.Get(sample.GPUSlowdownAt); ok && limit > 0 && limit < maxValue {
		l.SlowdownAt = limit
	}
	if clock, ok := SMClock.of(g, v); ok {
		l.Clock = max(l.Clock, clock)
	}
}

func (d *details) means(start, end time.Duration, m *Means) {
	to := min(end, d.at)
	for q := range Details {
		s := &d.states[q]
		from := max(start, s.since)
		if !s.begun || to <= from || to-from < (end-start)/2 {
			continue
		}
		high, okTo := d.level(q, to)
		low, okFrom := d.level(q, from)
		if okFrom && okTo {
			m.Set(q, max(0, high-low)/(to-from).Seconds())
		}
	}
}

// level returns the value of a quantity at a time, from the finest tier that covers it.
func (d *details) level(q Detail, m time.Duration) (float64, bool) {
	for i := range d.tiers {
		if t := &d.tiers[i]; t.covers(m) {
			return d.rows[q][i].level(t, m).value, true
		}
	}
	return 0, false
}
