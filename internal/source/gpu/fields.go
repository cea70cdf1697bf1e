package gpu

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// field is one value of nvmlDeviceGetFieldValues: the request, then the result.
type field struct {
	id    uint32
	scope uint32 // NVLink index

	value  float64
	narrow bool // 32 bits wide
	err    error
}

const (
	allLinks = 1<<32 - 1 // the sum of them (nvml.h)

	// energyCounter stands for sample.GPU.Energy, which is not a detail.
	energyCounter = sample.GPUQuantities
)

// fieldSpec describes a field value.
type fieldSpec struct {
	name     string // in nvml.h
	id       uint32
	scope    uint32
	quantity sample.GPUQuantity
	unit     float64
	wraps    bool
}

// fieldSpecs are read in one call. If several provide one quantity, the first that is supported is used.
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

// fieldName returns the name of a field value in fieldSpecs.
func fieldName(id uint32) string {
	i := slices.IndexFunc(fieldSpecs, func(p fieldSpec) bool { return p.id == id })
	return fieldSpecs[i].name
}

// batch is the field values that a device is known or assumed to support.
type batch struct {
	fields []field
	specs  []fieldSpec // one for each of fields
	wraps  [sample.GPUQuantities]unwrapper
	at     time.Duration // of the newest reading
}

func newBatch() batch {
	b := batch{specs: slices.Clone(fieldSpecs), fields: make([]field, len(fieldSpecs))}
	for i, p := range b.specs {
		b.fields[i].id, b.fields[i].scope = p.id, p.scope
	}
	return b
}

// provides reports whether a field value of the batch provides a quantity.
func (b *batch) provides(q sample.GPUQuantity) bool {
	return slices.ContainsFunc(b.specs, func(p fieldSpec) bool { return p.quantity == q })
}

// narrow reports whether a quantity's counter may wrap at 32 bits. A counter with a 64-bit type may, until it exceeds
// them.
func (b *batch) narrow(q sample.GPUQuantity) bool {
	i := slices.IndexFunc(b.specs, func(p fieldSpec) bool { return p.quantity == q })
	return i >= 0 && b.specs[i].wraps && (b.fields[i].narrow || !b.wraps[q].wide)
}

// readFields reads all field values in one call.
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
	kept, provided := 0, uint64(0)
	for i, p := range b.specs {
		f := b.fields[i]
		if provided&(1<<p.quantity) != 0 {
			continue // a field before it provides the same
		}
		if isUnsupported(f.err) {
			d.drop(p.quantity)
			continue
		}
		if f.err == nil {
			provided |= 1 << p.quantity
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
			d.batch.wraps[p.quantity] = wide // garbage is not a wrap
		}
	} else if r.valid("energy", value >= 0 && value <= maxEnergy) {
		r.gauges.Energy, r.gauges.Has = value, r.gauges.Has|sample.HasEnergy
	}
}

// gpmGrowth returns the growth of a PCIe counter in bytes according to GPM, or 0 if unknown.
func (d *deviceReader) gpmGrowth(q sample.GPUQuantity, r *reading) float64 {
	rate := sample.GPUPCIeReceiveRate
	if q == sample.GPUPCIeSent {
		rate = sample.GPUPCIeSendRate
	}
	value, provided := d.gpm.traffic.Get(rate)
	if !provided || d.batch.at == 0 {
		return 0
	}
	return value * (r.clocks.at.Mono - d.batch.at).Seconds()
}
