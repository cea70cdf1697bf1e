package window

import "github.com/stallspan/stallspan/internal/history"

// What of docs/report.md is about single GPUs, and what was found of them.

type findingJSON struct {
	Kind   FindingKind `json:"kind"`
	Text   string      `json:"text"`
	Remedy string      `json:"remedy,omitempty"`
}

type useJSON struct {
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
	Throttled   *throttledJSON `json:"throttled,omitempty"`
}

type throttledJSON struct {
	Power       *float64 `json:"power,omitempty"`
	Thermal     *float64 `json:"thermal,omitempty"`
	HWThermal   *float64 `json:"hw_thermal,omitempty"`
	PowerBrake  *float64 `json:"power_brake,omitempty"`
	SyncBoost   *float64 `json:"sync_boost,omitempty"`
	Board       *float64 `json:"board,omitempty"`
	Reliability *float64 `json:"reliability,omitempty"`
}

func (r *Report) usesJSON() (list []useJSON) {
	for i := range r.Uses {
		u := &r.Uses[i]
		get := func(d history.Detail) *float64 {
			if mean, told := u.Means.Get(d); told {
				return &mean
			}
			return nil
		}
		out := useJSON{
			ID: u.ID, Busy: u.Busy, SM: get(history.SMActive), Occupancy: get(history.SMOccupancy),
			Tensor: get(history.TensorActive), DRAM: get(history.DRAMActive), Clock: get(history.SMClock),
			Temperature: get(history.Temperature), Power: get(history.Power), Memory: get(history.MemoryUsed),
		}
		throttled := throttledJSON{
			get(history.ThrottledPower), get(history.ThrottledThermal), get(history.ThrottledHWThermal),
			get(history.ThrottledPowerBrake), get(history.ThrottledSyncBoost), get(history.ThrottledBoard),
			get(history.ThrottledReliability),
		}
		if throttled != (throttledJSON{}) {
			out.Throttled = &throttled
		}
		list = append(list, out)
	}
	return list
}
