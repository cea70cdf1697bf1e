package emit

import (
	"math"

	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/semconv"
)

// gpuDetail emits the last details of a GPU, with the time of their reading.
func (m *Metrics) gpuDetail(b *builder, d *sample.GPUDetail, now *sample.Snapshot, sets *gpuSets, c *gpuCounted) {
	b.time = now.GPUs.At.Wall.Add(d.At - now.GPUs.At.Mono)
	for q, v := range d.Values.All() {
		to := places[q].metric
		if to == nil || math.IsNaN(v) || math.IsInf(v, 0) {
			continue
		}
		b.start = now.Boot
		if to.Kind == semconv.Counter {
			b.start = c.details[q].start(v, c.detail, now.Boot)
		}
		if to.Int {
			b.int(to, toCount(v), sets.details[q])
		} else {
			b.float(to, v, sets.details[q])
		}
	}
	m.errors(b, d, sets)
	c.detail = b.time
	b.time, b.start = now.GPUs.At.Wall, now.Boot
}

// toCount converts a count that was stored as a float64, which is exact up to 2^53.
func toCount(v float64) uint64 { return uint64(min(max(0, v), math.MaxInt64)) }

// errors emits the errors that this program has counted since its start.
func (m *Metrics) errors(b *builder, d *sample.GPUDetail, sets *gpuSets) {
	b.start = m.program
	b.xids(d.XIDs, sets)
}

// xids emits a series for each of the first maxXIDs codes, and one for all others.
func (b *builder) xids(all []sample.XID, sets *gpuSets) {
	others, more := uint64(0), false
	for _, x := range all {
		if set, own := sets.xid(x.Code); own {
			b.int(&semconv.HwErrors, x.Count, set)
		} else {
			others, more = others+x.Count, true
		}
	}
	if more {
		b.int(&semconv.HwErrors, others, sets.otherXID)
	}
}

// driver emits the cost of the calls to the GPUs' driver.
func (m *Metrics) driver(b *builder, now *sample.Snapshot) {
	use := now.GPUs.DriverUse
	if use == nil {
		return
	}
	b.start = m.program
	for i := range use.Calls {
		call := &use.Calls[i]
		set := *m.sets.calls.get(call.Name, newCallSet)
		b.float(&semconv.GPUDriverCallTime, call.Time.Seconds(), set)
		b.int(&semconv.GPUDriverCalls, call.Count, set)
		b.float(&semconv.GPUDriverCallLongest, call.Longest.Seconds(), set)
	}
	for i := range use.Fields {
		field := &use.Fields[i]
		b.float(&semconv.GPUDriverFieldTime, field.Time.Seconds(), *m.sets.fields.get(field.Name, newFieldSet))
	}
	b.int(&semconv.GPUDriverValuesDropped, use.Dropped, *attribute.EmptySet())
	b.int(&semconv.GPUDriverSessions, use.Sessions, *attribute.EmptySet())
	b.start = now.Boot
}
