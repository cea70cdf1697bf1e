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
		for q := range Details {
			d.rows[q][i].put(t.head, d.states[q].value)
		}
		t.push(reading.At)
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
	l.Index, l.Vendor = g.Index, g.Vendor
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

// Detail is a quantity of a GPU that has a mean: a ratio, hertz, degrees Celsius, watts or bytes. The mean of a
// throttle counter is a share of the time.
type Detail uint8

const (
	SMActive Detail = iota
	SMOccupancy
	TensorActive
	DRAMActive
	SMClock // Hz
	Temperature
	Power
	MemoryUsed
	ThrottledPower // this and the following are counters of seconds
	ThrottledThermal
	ThrottledHWThermal
	ThrottledPowerBrake
	ThrottledSyncBoost
	ThrottledBoard
	ThrottledReliability
	Details // number of details
)

// quantities are the sources of details. Details that are missing here are in every row of a GPU.
var quantities = [Details]sample.GPUQuantity{
	SMActive: sample.GPUSMActive, SMOccupancy: sample.GPUSMOccupancy, TensorActive: sample.GPUTensorActive,
	DRAMActive: sample.GPUDRAMActive, SMClock: sample.GPUClockSM,
	ThrottledPower: sample.GPUThrottledPower, ThrottledThermal: sample.GPUThrottledThermal,
	ThrottledHWThermal: sample.GPUThrottledHWThermal, ThrottledPowerBrake: sample.GPUThrottledPowerBrake,
	ThrottledSyncBoost: sample.GPUThrottledSyncBoost, ThrottledBoard: sample.GPUThrottledBoard,
	ThrottledReliability: sample.GPUThrottledReliability,
}

// of returns d of one GPU. It rejects implausible numbers, which a damaged recording may contain.
func (d Detail) of(g *sample.GPU, v *sample.GPUValues) (value float64, ok bool) {
	switch d {
	case Temperature:
		value, ok = g.Temperature, g.Has&sample.HasTemperature != 0
	case Power:
		value, ok = g.Power, g.Has&sample.HasPower != 0
	case MemoryUsed:
		value, ok = float64(g.MemoryUsed), g.Has&sample.HasMemory != 0
	default:
		value, ok = v.Get(quantities[d])
	}
	return value, ok && value >= 0 && value < maxValue
}

// maxValue is above any plausible detail.
const maxValue = 1e18

// Means holds the known means. The zero value holds none.
type Means struct {
	has    uint32
	values [Details]float64
}

// Set stores a mean.
func (m *Means) Set(d Detail, value float64) {
	m.has |= 1 << d
	m.values[d] = value
}

// Get returns a mean, and whether it is known.
func (m *Means) Get(d Detail) (mean float64, ok bool) { return m.values[d], m.has&(1<<d) != 0 }

// Empty reports whether no mean is known.
func (m *Means) Empty() bool { return m.has == 0 }

// GPULimits are the newest limits of a GPU; 0 where one is not known.
type GPULimits struct {
	Index      int     // as in nvidia-smi, or among AMD's
	Vendor     string  // sample.GPU.Vendor
	Memory     uint64  // bytes
	Power      float64 // watts
	SlowdownAt float64 // degrees Celsius
	Clock      float64 // hertz, highest SM clock so far
}

// Name is how people name the GPU.
func (l *GPULimits) Name() string { return sample.GPUName(l.Vendor, l.Index) }

// Means returns the means of a GPU's details between two times. A reading covers the time since the previous one, about
// a second. The mean leaves out the end, if its readings are late, and all before the first reading or before a gap of
// more than five seconds. A quantity that is known for less than half of the time has no mean.
func (h *History) Means(gpu string, start, end time.Duration) (m Means) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if d := h.details[gpu]; d != nil {
		d.means(start, end, &m)
	}
	return m
}

// Limits returns the limits of a GPU, or zero if its details are not known.
func (h *History) Limits(gpu string) GPULimits {
	limits, _ := h.LimitsOf(gpu)
	return limits
}

// LimitsOf is Limits, and reports whether the details of the GPU are known.
func (h *History) LimitsOf(gpu string) (GPULimits, bool) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if d := h.details[gpu]; d != nil {
		return d.limits, true
	}
	return GPULimits{}, false
}
