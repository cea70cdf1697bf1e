package history

import (
	"iter"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Detail is what is kept of a GPU's details (sample.GPUDetail): means of ratios, hertz, degrees Celsius, watts and bytes,
// and of what is throttled the share of the time.
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
	ThrottledPower // this and what follows are counters of seconds
	ThrottledThermal
	ThrottledHWThermal
	ThrottledPowerBrake
	ThrottledSyncBoost
	ThrottledBoard
	ThrottledReliability
	Details // how many there are
)

// quantities are where the details come from; those that are not among them are told by every row of a GPU.
var quantities = [Details]sample.GPUQuantity{
	SMActive: sample.GPUSMActive, SMOccupancy: sample.GPUSMOccupancy, TensorActive: sample.GPUTensorActive,
	DRAMActive: sample.GPUDRAMActive, SMClock: sample.GPUClockSM,
	ThrottledPower: sample.GPUThrottledPower, ThrottledThermal: sample.GPUThrottledThermal,
	ThrottledHWThermal: sample.GPUThrottledHWThermal, ThrottledPowerBrake: sample.GPUThrottledPowerBrake,
	ThrottledSyncBoost: sample.GPUThrottledSyncBoost, ThrottledBoard: sample.GPUThrottledBoard,
	ThrottledReliability: sample.GPUThrottledReliability,
}

// of reads d of one GPU. What is no sensible number, as a damaged recording may hold, is not told.
func (d Detail) of(g *sample.GPU, v *sample.GPUValues) (value float64, told bool) {
	switch d {
	case Temperature:
		value, told = g.Temperature, g.Has&sample.HasTemperature != 0
	case Power:
		value, told = g.Power, g.Has&sample.HasPower != 0
	case MemoryUsed:
		value, told = float64(g.MemoryUsed), g.Has&sample.HasMemory != 0
	default:
		value, told = v.Get(quantities[d])
	}
	return value, told && value >= 0 && value < mostValue
}

// mostValue is more than any detail is.
const mostValue = 1e18

// Means holds a mean for each detail that is told. Its zero value holds none.
type Means struct {
	has    uint32
	values [Details]float64
}

// Set takes a mean over.
func (m *Means) Set(d Detail, value float64) {
	m.has |= 1 << d
	m.values[d] = value
}

// Get gives a mean, and whether it is told.
func (m *Means) Get(d Detail) (mean float64, told bool) { return m.values[d], m.has&(1<<d) != 0 }

// All goes through what is told.
func (m *Means) All() iter.Seq2[Detail, float64] {
	return func(yield func(Detail, float64) bool) {
		for d := range Details {
			if mean, told := m.Get(d); told && !yield(d, mean) {
				return
			}
		}
	}
}

// Empty says that nothing is told.
func (m *Means) Empty() bool { return m.has == 0 }

// GPULimits are what a GPU's means are held against: as it told last, and 0 where it did not.
type GPULimits struct {
	Index      int     // as nvidia-smi counts the machine's devices
	Memory     uint64  // bytes
	Power      float64 // watts
	SlowdownAt float64 // degrees Celsius
	Clock      float64 // hertz, of the SMs: the highest that was seen so far
}

// Means are those of a GPU's details between two moments. A reading of details belongs to the time since the one before
// it, about a second. Details come late: what they have not told yet of the end is left out, and so is what lies before a
// quantity was first told, or told again after a gap of over five seconds. A quantity of which less than half of the time
// is known has no mean.
func (h *History) Means(gpu string, start, end time.Duration) (m Means) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if d := h.details[gpu]; d != nil {
		d.means(start, end, &m)
	}
	return m
}

// Limits are those of a GPU; zero of one whose details are not known.
func (h *History) Limits(gpu string) GPULimits {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if d := h.details[gpu]; d != nil {
		return d.limits
	}
	return GPULimits{}
}
