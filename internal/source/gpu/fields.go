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

	requested bool // in the newest call
}

const (
	allLinks = 1<<32 - 1 // the sum of them (nvml.h)

	// energyCounter stands for sample.GPU.Energy, and meanPower for what only a GPU has whose sample.GPU.Power is a mean.
	// They are no details.
	energyCounter = sample.GPUQuantities
	meanPower     = energyCounter + 1

	energyTurn = 83 // as the field value that takes longest, so that it is not read together with the others
)

// fieldName returns the name of a field value in fieldRows.
func fieldName(id uint32) string {
	i := slices.IndexFunc(fieldRows, func(p row) bool { return p.id == id })
	return fieldRows[i].name
}

// batch is the field values that a device is known or assumed to support.
type batch struct {
	fields    []field
	specs     []row   // one for each of fields
	requested []field // the newest call
	wraps     [sample.GPUQuantities]unwrapper
	at        time.Duration // of the newest reading; 0 for none, and after a gap
}

func newBatch() batch {
	b := batch{specs: slices.Clone(fieldRows), fields: make([]field, len(fieldRows))}
	for i, p := range b.specs {
		b.fields[i].id, b.fields[i].scope = p.id, p.scope
	}
	return b
}

// provides reports whether a field value of the batch provides a quantity.
func (b *batch) provides(q sample.GPUQuantity) bool {
	return slices.ContainsFunc(b.specs, func(p row) bool { return p.quantity == q })
}

// has reports whether a field value of the batch that provides a quantity has a trait.
func (b *batch) has(q sample.GPUQuantity, t traits) bool {
	return slices.ContainsFunc(b.specs, func(p row) bool { return p.quantity == q && p.traits&t != 0 })
}

// narrow reports whether a quantity's counter may wrap at 32 bits. A counter with a 64-bit type may, until it exceeds
// them.
func (b *batch) narrow(q sample.GPUQuantity) bool {
	i := slices.IndexFunc(b.specs, func(p row) bool { return p.quantity == q })
	return i >= 0 && b.specs[i].traits&wraps != 0 && (b.fields[i].narrow || !b.wraps[q].wide)
}

// readFields reads the field values that are due in one call.
func (d *deviceReader) readFields(r *reading) {
	b := &d.batch
	d.selectFields()
	succeeded := len(b.requested) == 0
	if !succeeded {
		d.do(queryFields, r, func() error {
			err := d.fields(b.requested)
			succeeded = err == nil
			return err
		})
	}
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
	kept, provided, answer := 0, uint64(0), 0
	for i, p := range b.specs {
		f := b.fields[i]
		if f.requested {
			f, answer = b.requested[answer], answer+1
			f.requested = true
		}
		if provided&(1<<p.quantity) != 0 {
			continue // a field before it provides the same
		}
		if p.quantity == meanPower {
			d.averagesPower = f.err == nil
			continue
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

// selectFields selects the field values of the next call.
func (d *deviceReader) selectFields() {
	b, before := &d.batch, uint64(0)
	b.requested = b.requested[:0]
	for i, p := range b.specs {
		// There is a second field of a quantity only while the first fails.
		b.fields[i].requested = before&(1<<p.quantity) != 0 || d.isFieldDue(p)
		before |= 1 << p.quantity
		if b.fields[i].requested {
			b.requested = append(b.requested, b.fields[i])
		}
	}
}

// isFieldDue reports whether a field value is read now. One that takes the driver long has its turn in every tenth
// reading. A counter of throttle time is also read while the driver gives its reason, and once after that, so that it
// has grown in the seconds in which it grew; and while its value is not known.
func (d *deviceReader) isFieldDue(p row) bool {
	switch {
	case p.quantity == energyCounter:
		return d.energyDue()
	case p.traits&rarely == 0 || d.hasTurn(int(p.id)):
		return true
	}
	_, known := d.values.Get(p.quantity)
	return !known || (d.reasons|d.reasonsBefore)&bitOf(p.quantity) != 0
}

// paced lets a counter of throttle time grow no faster than time. If the driver gave its reason in none of the readings
// in which it grew, it is found to have grown by up to ten seconds at once. Windows would take one second of it.
func (d *deviceReader) paced(q sample.GPUQuantity, value float64, r *reading) float64 {
	before, known := d.values.Get(q)
	if !known || value <= before || d.batch.at == 0 {
		return value
	}
	return max(value-rotations, min(value, before+(r.clocks.at.Mono-d.batch.at).Seconds()))
}

func (d *deviceReader) applyField(p row, f field, r *reading) {
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
	if p.traits&wraps != 0 && value >= 0 {
		wide = d.batch.wraps[p.quantity]
		value = wide.add(value, f.narrow, d.gpmGrowth(p.quantity, r))
	}
	value *= p.unit
	switch {
	case p.quantity == energyCounter:
		if f.requested && r.valid("energy", value >= 0 && value <= maxEnergy) {
			r.gauges.Energy, r.gauges.Has = value, r.gauges.Has|sample.HasEnergy
		}
	case p.traits&rarely == 0:
		if d.set(p.quantity, value, r) && p.traits&wraps != 0 {
			d.batch.wraps[p.quantity] = wide // garbage is not a wrap
		}
	case f.requested:
		d.set(p.quantity, d.paced(p.quantity, value, r), r)
	default: // it was valid when it was read: else it would be due
		d.values.Set(p.quantity, d.paced(p.quantity, value, r))
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
