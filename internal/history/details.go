package history

import (
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// details are what one GPU tells once a second, on a time axis of its own: each GPU is asked at its own moment. They have
// the same reach as the other columns at a tenth of the rows.
type details struct {
	at     time.Duration // of the newest reading
	tiers  []tier
	states [Details]detailState
	rows   [Details][]rows // by tier
	limits GPULimits
}

// detailState is where one quantity stands.
type detailState struct {
	raw   float64       // as it was told last
	told  time.Duration // when that was; meaningless before it was told
	since time.Duration // when it began to be told without a gap
	begun bool
	value float64 // what is kept: the integral over seconds, of a counter what it grew
}

// hold is for how long a quantity is taken to go on as it was told last, in the mean of what comes next.
const hold = 5 * time.Second

// detailEvery is how many times rarer details are than other readings.
const (
	detailEvery = 10
	leastDetail = 32 // rows of a tier
)

// detailShare is the most of the memory that details may take on all tiers; the others' are kept on the finest alone.
const detailShare = 0.1

func detailTier(t Tier) Tier {
	return Tier{Period: t.Period * detailEvery, Rows: max(t.Rows/detailEvery, leastDetail)}
}

// detailSize is the memory of one GPU's details on the first tiers.
func (h *History) detailSize(tiers int) (size int) {
	for _, t := range h.config.Tiers[:tiers] {
		size += 8 * detailTier(t).Rows * (1 + int(Details))
	}
	return size
}

// detail takes the details of a reading over. h.mu is held.
func (h *History) detail(s *sample.Sample) {
	for i := range s.GPUDetails {
		told := &s.GPUDetails[i]
		g := slices.IndexFunc(s.GPUs, func(g sample.GPU) bool { return g.ID == told.GPU && g.Status == sample.GPUWorks })
		if g < 0 || told.At < 0 || len(told.XIDs) > 0 && told.Values.Empty() {
			continue // an error is told of at once, between two readings of the rest
		}
		d := h.details[told.GPU]
		if d == nil {
			d = h.openDetails(told)
		}
		if d != nil && (told.At > d.at || d.tiers[0].next == 0) {
			d.advance(&s.GPUs[g], told)
		}
	}
}

// openDetails makes room for a GPU; nil where there is none. One that has told nothing for longer than is kept makes room.
func (h *History) openDetails(told *sample.GPUDetail) *details {
	for id, old := range h.details {
		if told.At-old.at > h.horizon(len(old.tiers)) {
			h.bytes -= h.detailSize(len(old.tiers))
			h.detailBytes -= h.detailSize(len(old.tiers))
			delete(h.details, id)
		}
	}
	tiers := len(h.config.Tiers)
	if size, most := h.detailSize(tiers), float64(h.config.MaxBytes); float64(h.detailBytes+size) > detailShare*most ||
		float64(h.bytes+size) > fullShare*most {
		tiers = 1
	}
	size := h.detailSize(tiers)
	if h.bytes+size > h.config.MaxBytes {
		h.refused++
		return nil
	}
	h.bytes, h.detailBytes = h.bytes+size, h.detailBytes+size
	d := &details{tiers: make([]tier, tiers)}
	for i := range d.tiers {
		t := detailTier(h.config.Tiers[i])
		d.tiers[i] = tier{period: t.Period, times: make([]time.Duration, t.Rows)}
		for c := range d.rows {
			d.rows[c] = append(d.rows[c], rows{values: make([]float64, t.Rows)})
		}
	}
	if h.details == nil {
		h.details = map[string]*details{}
	}
	h.details[told.GPU] = d
	return d
}

// advance takes a reading, later than the one before.
func (d *details) advance(g *sample.GPU, told *sample.GPUDetail) {
	step := told.At - d.at
	first := d.tiers[0].next == 0
	for q := range Details {
		value, ok := q.of(g, &told.Values)
		d.states[q].advance(told.At, step, value, ok, q >= ThrottledPower, first)
	}
	d.limits.note(g, &told.Values)
	d.at = told.At
	for i := range d.tiers {
		t := &d.tiers[i]
		if !t.takes(told.At) {
			continue
		}
		t.times[t.head] = told.At
		for q := range Details {
			d.rows[q][i].put(t.head, d.states[q].value)
		}
		t.next++
		if t.head++; t.head == len(t.times) {
			t.head = 0
		}
	}
}

// advance takes what was told of one quantity at a moment, step after the reading before.
func (s *detailState) advance(at, step time.Duration, value float64, told, counter, first bool) {
	known := s.begun && !first && step <= hold && at-s.told <= hold
	switch {
	case told && known && counter:
		grown, _ := growth(s.raw, value, false)
		s.value += min(grown, (at - s.told).Seconds()) // no second holds more than one
	case told && known:
		s.value += value * step.Seconds()
	case told && !counter && !first && step <= hold:
		s.value += value * step.Seconds()
		s.since = at - step
	case told:
		s.since = at
	case known && !counter:
		s.value += s.raw * step.Seconds()
	case !known:
		s.since = at // a mean has nothing to say of what lies before
	}
	if told {
		s.raw, s.told, s.begun = value, at, true
	}
}

func (l *GPULimits) note(g *sample.GPU, v *sample.GPUValues) {
	l.Index = g.Index
	if g.Has&sample.HasMemory != 0 {
		l.Memory = g.MemoryTotal
	}
	if limit, told := v.Get(sample.GPUPowerLimit); told && limit > 0 && limit < mostValue {
		l.Power = limit
	}
	if limit, told := v.Get(sample.GPUSlowdownAt); told && limit > 0 && limit < mostValue {
		l.SlowdownAt = limit
	}
	if clock, told := SMClock.of(g, v); told {
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

// level is a quantity's height at a moment, on the finest tier that still holds it.
func (d *details) level(q Detail, m time.Duration) (float64, bool) {
	for i := range d.tiers {
		if t := &d.tiers[i]; t.covers(m) {
			return d.rows[q][i].level(t, m).value, true
		}
	}
	return 0, false
}
