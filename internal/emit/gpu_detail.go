package emit

import (
	"math"

	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/semconv"
)

// gpuDetail tells what an accelerator told last, at the time at which it did.
func (m *Metrics) gpuDetail(b *builder, d *sample.GPUDetail, now *sample.Snapshot, of *gpuSets, c *gpuCounted) {
	b.time = now.GPUs.At.Wall.Add(d.At - now.GPUs.At.Mono)
	for q, v := range d.Values.All() {
		to := places[q].metric
		if to == nil || math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		b.start = now.Boot
		if to.Kind == semconv.Counter {
			b.start = c.details[q].start(v, c.asked, now.Boot)
		}
		if to.Int {
			b.int(to, whole(v), of.details[q])
		} else {
			b.float(to, v, of.details[q])
		}
	}
	m.errors(b, d, of)
	c.asked = b.time
	b.time, b.start = now.GPUs.At.Wall, now.Boot
}

// whole is a count that was kept as a float64, which is exact up to 2^53.
func whole(v float64) uint64 { return uint64(min(max(0, v), math.MaxInt64)) }

// errors are those that the program has counted since it began.
func (m *Metrics) errors(b *builder, d *sample.GPUDetail, of *gpuSets) {
	b.start = m.program
	b.xids(d.XIDs, of)
}

// xids counts each code by itself, and together those that came after mostXIDs others.
func (b *builder) xids(all []sample.XID, of *gpuSets) {
	others, more := uint64(0), false
	for _, x := range all {
		if set, own := of.xid(x.Code); own {
			b.int(&semconv.HwErrors, x.Count, set)
		} else {
			others, more = others+x.Count, true
		}
	}
	if more {
		b.int(&semconv.HwErrors, others, of.otherXID)
	}
}

// driver tells what asking the accelerators' driver has cost.
func (m *Metrics) driver(b *builder, now *sample.Snapshot) {
	use := now.GPUs.DriverUse
	if use == nil {
		return
	}
	b.start = m.program
	for i := range use.Calls {
		call := &use.Calls[i]
		of := *m.sets.calls.of(call.Name, newCallSet)
		b.float(&semconv.GPUDriverCallTime, call.Time.Seconds(), of)
		b.int(&semconv.GPUDriverCalls, call.Count, of)
		b.float(&semconv.GPUDriverCallLongest, call.Longest.Seconds(), of)
	}
	for i := range use.Fields {
		field := &use.Fields[i]
		b.float(&semconv.GPUDriverFieldTime, field.Time.Seconds(), *m.sets.fields.of(field.Name, newFieldSet))
	}
	b.int(&semconv.GPUDriverValuesDropped, use.Dropped, *attribute.EmptySet())
	b.int(&semconv.GPUDriverSessions, use.Sessions, *attribute.EmptySet())
	b.start = now.Boot
}
