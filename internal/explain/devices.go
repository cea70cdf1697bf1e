package explain

import (
	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/window"
)

// gpu is how one GPU was used. The values are means over the window.
type gpu struct {
	ID          string         `json:"id"`
	Busy        float64        `json:"busy_ratio"`
	SM          *float64       `json:"sm_active,omitempty"`
	Occupancy   *float64       `json:"sm_occupancy,omitempty"`
	Tensor      *float64       `json:"tensor_active,omitempty"`
	DRAM        *float64       `json:"dram_active,omitempty"`
	Clock       *float64       `json:"sm_clock_hz,omitempty"`
	Temperature *float64       `json:"temperature_celsius,omitempty"`
	Power       *float64       `json:"power_watts,omitempty"`
	Memory      *float64       `json:"memory_used_bytes,omitempty"`
	Throttled   *throttleRatio `json:"throttled,omitempty"`
}

// throttleRatio is the share of the window for each cause.
type throttleRatio struct {
	Power       *float64 `json:"power,omitempty"`
	Thermal     *float64 `json:"thermal,omitempty"`
	HWThermal   *float64 `json:"hw_thermal,omitempty"`
	PowerBrake  *float64 `json:"power_brake,omitempty"`
	SyncBoost   *float64 `json:"sync_boost,omitempty"`
	Board       *float64 `json:"board,omitempty"`
	Reliability *float64 `json:"reliability,omitempty"`
}

func newGPUs(uses []window.GPUUse) (all []gpu) {
	for i := range uses {
		u := &uses[i]
		get := func(d history.Detail) *float64 {
			if mean, known := u.Means.Get(d); known {
				return &mean
			}
			return nil
		}
		out := gpu{
			ID: u.ID, Busy: u.Busy, SM: get(history.SMActive), Occupancy: get(history.SMOccupancy),
			Tensor: get(history.TensorActive), DRAM: get(history.DRAMActive), Clock: get(history.SMClock),
			Temperature: get(history.Temperature), Power: get(history.Power), Memory: get(history.MemoryUsed),
		}
		throttled := throttleRatio{
			get(history.ThrottledPower), get(history.ThrottledThermal), get(history.ThrottledHWThermal),
			get(history.ThrottledPowerBrake), get(history.ThrottledSyncBoost), get(history.ThrottledBoard),
			get(history.ThrottledReliability),
		}
		if throttled != (throttleRatio{}) {
			out.Throttled = &throttled
		}
		all = append(all, out)
	}
	return all
}
