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
type fieldSpec struct {
	name     string // in nvml.h
	id       uint32
	scope    uint32
	quantity sample.GPUQuantity
	unit     float64
	wraps    bool
}

// fieldPlans are asked for in one call. Of several that tell the same, the first that is answered is kept.
var fieldSpecs = []fieldSpec{
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
	i := slices.IndexFunc(fieldSpecs, func(p fieldSpec) bool { return p.id == id })
	return fieldSpecs[i].name
}

// batch is the fields that a device is still asked for.
type batch struct {
	fields []field
	specs  []fieldSpec // one for each
	wraps  [sample.GPUQuantities]unwrapper
	at     time.Duration // of the newest answer
}

func newBatch() batch {
	b := batch{specs: slices.Clone(fieldSpecs), fields: make([]field, len(fieldSpecs))}
	for i, p := range b.specs {
		b.fields[i].id, b.fields[i].scope = p.id, p.scope
	}
	return b
}

// tells says whether a field is asked for that tells a quantity.
func (b *batch) provides(q sample.GPUQuantity) bool {
	return slices.ContainsFunc(b.specs, func(p fieldSpec) bool { return p.quantity == q })
}

// narrow says whether a quantity comes from a counter that may wrap at 32 bits: whatever its type is, until it was beyond.
func (b *batch) narrow(q sample.GPUQuantity) bool {
	i := slices.IndexFunc(b.specs, func(p fieldSpec) bool { return p.quantity == q })
	return i >= 0 && b.specs[i].wraps && (b.fields[i].narrow || !b.wraps[q].wide)
}

// askFields asks for all fields at once.
func (d *deviceReader) readFields(r *reading) {
	b, succeeded := &d.batch, false
	d.do(queryFields, r, func() error {
		err := d.fields(b.fields)
		succeeded = err == nil
		return err
	})
	switch {
	case d.unsupported[queryFields]:
		b.fields, b.specs = nil, nil
		return
	case !succeeded:
		for _, p := range b.specs {
			d.drop(p.quantity)
		}
		return
	}
	kept, told := 0, uint64(0)
	for i, p := range b.specs {
		f := b.fields[i]
		if told&(1<<p.quantity) != 0 {
			continue // a field that tells the same comes before it
		}
		if isUnsupported(f.err) { // the device does not have it, or no longer
			d.drop(p.quantity)
			continue
		}
		if f.err == nil {
			told |= 1 << p.quantity
		}
		b.fields[kept], b.specs[kept] = f, p
		kept++
		d.applyField(p, f, r)
	}
	b.fields, b.specs = b.fields[:kept], b.specs[:kept]
	b.at = r.clocks.at.Mono
	d.unsupported[queryFields] = kept == 0
}

func (d *deviceReader) applyField(p fieldSpec, f field, r *reading) {
	switch {
	case r.failed != nil:
		return
	case isLost(f.err), isSessionEnded(f.err):
		r.failed = f.err
		return
	case f.err != nil:
		d.drop(p.quantity)
		if !errors.Is(f.err, codeNotFound) {
			r.problems = append(r.problems, fmt.Errorf("GPU %s: %s: %w", d.id(), p.name, f.err))
		}
		return
	}
	value := f.value
	var wide unwrapper
	if p.wraps && value >= 0 {
		wide = d.batch.wraps[p.quantity]
		value = wide.add(value, f.narrow, d.gpmGrowth(p.quantity, r))
	}
	value *= p.unit
	if p.quantity != energyCounter {
		if d.set(p.quantity, value, r) && p.wraps {
			d.batch.wraps[p.quantity] = wide // what cannot be says nothing of wraps
		}
	} else if r.valid("energy", value >= 0 && value <= maxEnergy) {
		r.gauges.Energy, r.gauges.Has = value, r.gauges.Has|sample.HasEnergy
	}
}

// expected is by how many bytes a PCIe counter should have grown, as GPM says.
func (d *deviceReader) gpmGrowth(q sample.GPUQuantity, r *reading) float64 {
	rate := sample.GPUPCIeReceiveRate
	if q == sample.GPUPCIeSent {
		rate = sample.GPUPCIeSendRate
	}
	value, told := d.gpm.traffic.Get(rate)
	if !told || d.batch.at == 0 {
		return 0
	}
	return value * (r.clocks.at.Mono - d.batch.at).Seconds()
}
