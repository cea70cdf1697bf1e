package history

import (
	"iter"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

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

// All iterates over the known means.
func (m *Means) All() iter.Seq2[Detail, float64] {
	return func(yield func(Detail, float64) bool) {
		for d := range Details {
			if mean, ok := m.Get(d); ok && !yield(d, mean) {
				return
			}
		}
	}
}

// Empty reports whether no mean is known.
func (m *Means) Empty() bool { return m.has == 0 }

// GPULimits are the newest limits of a GPU; 0 where one is not known.
type GPULimits struct {
	Index      int     // as in nvidia-smi
	Memory     uint64  // bytes
	Power      float64 // watts
	SlowdownAt float64 // degrees Celsius
	Clock      float64 // hertz, highest SM clock so far
}

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
