package stat

import (
	"math"

	"github.com/stallspan/stallspan/internal/sample"
)

// GPU holds the rates of one GPU in an interval, and its state at the end. Values that the hardware does not support
// are nil. A GPU that does not work has its id, name and status only.
type GPU struct {
	Index  int              `json:"-"` // as in nvidia-smi
	ID     string           `json:"id"`
	Name   string           `json:"name"`
	Status sample.GPUStatus `json:"status,omitempty"` // hung, lost or unknown; empty if it works

	// Utilization is the share of the interval with at least one kernel running. It is nil without a new reading, or if
	// the GPU did not work at the start of the interval.
	Utilization *float64 `json:"utilization,omitempty"`
	MemoryUsed  *uint64  `json:"memory_used_bytes,omitempty"`
	MemoryTotal *uint64  `json:"memory_total_bytes,omitempty"`
	Temperature *float64 `json:"temperature_celsius,omitempty"`
	// Power is the mean of about the last second if the GPU counts its energy, else the driver's average.
	Power          *float64 `json:"power_watts,omitempty"`
	LinkWidth      *int     `json:"pcie_link_width,omitempty"`
	LinkGeneration *int     `json:"pcie_link_generation,omitempty"`

	GPUUse

	vendor string // sample.GPU.Vendor
}

func gpus(before, after *sample.Sample) []GPU {
	interval := elapsed(before, after)
	was := make(map[string]*sample.GPU, len(before.GPUs))
	for i := range before.GPUs {
		was[before.GPUs[i].ID] = &before.GPUs[i]
	}
	var list []GPU
	for i := range after.GPUs {
		b := &after.GPUs[i]
		g := GPU{Index: b.Index, ID: b.ID, Name: b.Name, Status: b.Status, vendor: b.Vendor}
		if b.Status == sample.GPUWorks {
			g.state(b)
			g.GPUUse = useOf(detailOf(before, b.ID), detailOf(after, b.ID))
			if a := was[b.ID]; a != nil && a.Status == sample.GPUWorks && interval > 0 &&
				b.Busy >= a.Busy && (a.Has|b.Has)&sample.LacksBusy == 0 { // it restarts when the driver is loaded again
				g.Utilization = new(min(1, (b.Busy-a.Busy).Seconds()/interval.Seconds()))
			}
		}
		list = append(list, g)
	}
	return list
}

// state copies the state at the end of the interval.
func (g *GPU) state(b *sample.GPU) {
	if b.Has&sample.HasMemory != 0 {
		g.MemoryUsed, g.MemoryTotal = new(b.MemoryUsed), new(b.MemoryTotal)
	}
	if b.Has&sample.HasTemperature != 0 {
		g.Temperature = finite(b.Temperature)
	}
	if b.Has&sample.HasPower != 0 {
		g.Power = finite(b.Power)
	}
	if b.Has&sample.HasLink != 0 {
		g.LinkWidth, g.LinkGeneration = new(b.LinkWidth), new(b.LinkGeneration)
	}
}

// finite returns nil for NaN and infinity, which JSON does not support.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}
