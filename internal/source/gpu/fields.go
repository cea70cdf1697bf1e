package gpu

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// field is one value of nvmlDeviceGetFieldValues: what is asked for, then what was answered.
type field struct {
	id    uint32
	scope uint32 // which link

	value  float64
	narrow bool // 32 bits wide
	err    error
}

const (
	allLinks = 1<<32 - 1 // the sum of them (nvml.h)

	// energyCounter stands for sample.GPU.Energy, which is no detail.
	energyCounter = sample.GPUQuantities
)

// fieldPlan says what a field tells.
type fieldPlan struct {
	name     string // in nvml.h
	id       uint32
	scope    uint32
	quantity sample.GPUQuantity
	unit     float64
	wraps    bool
}

// fieldPlans are asked for in one call. Of several that tell the same, the first that is answered is kept.
var fieldPlans = []fieldPlan{
	{"NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 83, 0, energyCounter, 1e-3, false},
	{"NVML_FI_DEV_PCIE_COUNT_RX_BYTES", 198, 0, sample.GPUPCIeReceived, 1, true},
	{"NVML_FI_DEV_PCIE_COUNT_TX_BYTES", 197, 0, sample.GPUPCIeSent, 1, true},
	{"NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_RX", 139, allLinks, sample.GPUNVLinkReceived, 1024, false},
	{"NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX", 138, allLinks, sample.GPUNVLinkSent, 1024, false},
	{"NVML_FI_DEV_NVLINK_COUNT_RCV_BYTES", 204, allLinks, sample.GPUNVLinkReceived, 1, false},
	{"NVML_FI_DEV_NVLINK_COUNT_XMIT_BYTES", 202, allLinks, sample.GPUNVLinkSent, 1, false},
	{"NVML_FI_DEV_MEMORY_TEMP", 82, 0, sample.GPUTemperatureMemory, 1, false},
	{"NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP", 74, 0, sample.GPUThrottledPower, 1e-9, false},
	{"NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN", 269, 0, sample.GPUThrottledThermal, 1e-9, false},
	{"NVML_FI_DEV_PERF_POLICY_THERMAL", 75, 0, sample.GPUThrottledThermal, 1e-9, false},
	{"NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN", 270, 0, sample.GPUThrottledHWThermal, 1e-9, false},
	{"NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN", 271, 0, sample.GPUThrottledPowerBrake, 1e-9, false},
	{"NVML_FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST", 76, 0, sample.GPUThrottledSyncBoost, 1e-9, false},
	{"NVML_FI_DEV_PERF_POLICY_BOARD_LIMIT", 77, 0, sample.GPUThrottledBoard, 1e-9, false},
	{"NVML_FI_DEV_PERF_POLICY_RELIABILITY", 79, 0, sample.GPUThrottledReliability, 1e-9, false},
}

// fieldName is that of a field that is asked for.
func fieldName(id uint32) string {
	i := slices.IndexFunc(fieldPlans, func(p fieldPlan) bool { return p.id == id })
	return fieldPlans[i].name
}

// batch is the fields that a device is still asked for.
type batch struct {
	fields []field
	plans  []fieldPlan // one for each
	wraps  [sample.GPUQuantities]widened
	at     time.Duration // of the newest answer
}

func newBatch() batch {
	b := batch{plans: slices.Clone(fieldPlans), fields: make([]field, len(fieldPlans))}
	for i, p := range b.plans {
		b.fields[i].id, b.fields[i].scope = p.id, p.scope
	}
	return b
}

// tells says whether a field is asked for that tells a quantity.
func (b *batch) tells(q sample.GPUQuantity) bool {
	return slices.ContainsFunc(b.plans, func(p fieldPlan) bool { return p.quantity == q })
}

// narrow says whether a quantity comes from a counter that may wrap at 32 bits: whatever its type is, until it was beyond.
func (b *batch) narrow(q sample.GPUQuantity) bool {
	i := slices.IndexFunc(b.plans, func(p fieldPlan) bool { return p.quantity == q })
	return i >= 0 && b.plans[i].wraps && (b.fields[i].narrow || !b.wraps[q].wide)
}

// askFields asks for all fields at once.
func (a *asked) askFields(r *reading) {
	b, answered := &a.batch, false
	a.ask(askFields, r, func() error {
		err := a.fields(b.fields)
		answered = err == nil
		return err
	})
	switch {
	case a.lacks[askFields]:
		b.fields, b.plans = nil, nil
		return
	case !answered:
		for _, p := range b.plans {
			a.drop(p.quantity)
		}
		return
	}
	kept, told := 0, uint64(0)
	for i, p := range b.plans {
		f := b.fields[i]
		if told&(1<<p.quantity) != 0 {
			continue // a field that tells the same comes before it
		}
		if isLacking(f.err) { // the device does not have it, or no longer
			a.drop(p.quantity)
			continue
		}
		if f.err == nil {
			told |= 1 << p.quantity
		}
		b.fields[kept], b.plans[kept] = f, p
		kept++
		a.takeField(p, f, r)
	}
	b.fields, b.plans = b.fields[:kept], b.plans[:kept]
	b.at = r.clocks.at.Mono
	a.lacks[askFields] = kept == 0
}

func (a *asked) takeField(p fieldPlan, f field, r *reading) {
	switch {
	case r.failed != nil:
		return
	case isGone(f.err), isEnded(f.err):
		r.failed = f.err
		return
	case f.err != nil:
		a.drop(p.quantity)
		if !errors.Is(f.err, codeNotFound) {
			r.problems = append(r.problems, fmt.Errorf("GPU %s: %s: %w", a.id(), p.name, f.err))
		}
		return
	}
	value := f.value
	var wide widened
	if p.wraps && value >= 0 {
		wide = a.batch.wraps[p.quantity]
		value = wide.add(value, f.narrow, a.expected(p.quantity, r))
	}
	value *= p.unit
	if p.quantity != energyCounter {
		if a.keep(p.quantity, value, r) && p.wraps {
			a.batch.wraps[p.quantity] = wide // what cannot be says nothing of wraps
		}
	} else if r.possible("energy", value >= 0 && value <= mostEnergy) {
		r.gauges.Energy, r.gauges.Has = value, r.gauges.Has|sample.HasEnergy
	}
}

// expected is by how many bytes a PCIe counter should have grown, as GPM says.
func (a *asked) expected(q sample.GPUQuantity, r *reading) float64 {
	rate := sample.GPUPCIeReceiveRate
	if q == sample.GPUPCIeSent {
		rate = sample.GPUPCIeSendRate
	}
	value, told := a.gpm.traffic.Get(rate)
	if !told || a.batch.at == 0 {
		return 0
	}
	return value * (r.clocks.at.Mono - a.batch.at).Seconds()
}
