package gpu

import (
	"math"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

const wrap32 = 1 << 32 // 32-bit counters wrap here

// unwrapper unwraps a 32-bit counter. According to nvml.h the PCIe counters can wrap, but not where. A counter has 32
// bits if its type does, or if it decreases and never exceeded 32 bits. An unwrapper is valid for one session with the
// driver, in which counters are not reset.
type unwrapper struct {
	last, wraps float64
	known       bool
	narrow      bool // its type has 32 bits
	wide        bool // it has exceeded 32 bits
}

// add returns the unwrapped value. grown is the expected growth from another source, or 0 if unknown: a busy PCIe link
// wraps 32 bits several times a second. A wide counter that decreases was reset.
func (w *unwrapper) add(raw float64, narrow bool, grown float64) float64 {
	w.narrow = narrow
	if w.wide = !narrow && (w.wide || raw >= wrap32); w.wide {
		return raw
	}
	step := raw - w.last
	if w.known && step < 0 {
		step += wrap32
		w.wraps++
	}
	if w.known && (narrow || w.wraps > 0) {
		w.wraps += max(math.Round((grown-step)/wrap32), 0)
	}
	w.last, w.known = raw, true
	return raw + w.wraps*wrap32
}

// mayWrap reports whether the counter may wrap at 32 bits: one of a 64-bit type may, until it exceeds them.
func (w *unwrapper) mayWrap() bool { return w.narrow || !w.wide }

// maxRejected is how many values in a row are rejected before the counter is assumed to have been reset: each goes on
// from the one before.
const maxRejected = 3

// counter rejects values that a counter cannot have reached.
type counter struct {
	value, other float64       // what was accepted, and what was rejected since
	at, otherAt  time.Duration // 0 for none
	rejected     int           // values that go on from the first of them
}

// accept reports whether the counter can have the value, given its maximum rate a second. One that falls may have been
// reset, or the value is garbage: see maxRejected.
func (c *counter) accept(value float64, at time.Duration, maxRate float64) bool {
	follows := func(before float64, beforeAt time.Duration) bool {
		return value >= before && value-before <= maxRate*((at-beforeAt).Seconds()+1)
	}
	if c.at != 0 && !follows(c.value, c.at) && c.rejected < maxRejected {
		if c.rejected > 0 && !follows(c.other, c.otherAt) {
			c.rejected = 0
		}
		c.other, c.otherAt = value, at
		c.rejected++
		return false
	}
	c.value, c.at, c.rejected = value, at, 0
	return true
}

// counterOf has the counter of each rate of GPM. The rate stands in for the counter or helps to unwrap it.
var counterOf = map[quantity]quantity{
	sample.GPUPCIeReceiveRate: sample.GPUPCIeReceived, sample.GPUPCIeSendRate: sample.GPUPCIeSent,
}

// gpmGrowth returns the growth of a PCIe counter in bytes according to GPM, or 0 if unknown.
func (d *deviceReader) gpmGrowth(q quantity, r *reading) float64 {
	for rate, counter := range counterOf {
		if value, known := d.values.Get(rate); counter == q && known && d.at != 0 {
			return value * (r.clocks.at.Mono - d.at).Seconds()
		}
	}
	return 0
}

const (
	minGPMInterval = 100 * time.Millisecond // between two samples (nvml.h)
	maxGPMInterval = 10 * time.Second       // a mean over more, such as after a hang, is useless

	// maxStep bounds the time that one reading covers, of the reasons or of power.
	maxStep = 2 * time.Second
	// anyReason stands for reasons that are not known.
	anyReason = 1<<64 - 1
)

// paced lets a counter of throttle time grow no faster than time. If the driver gave its reason in none of the readings
// in which it grew, it is found to have grown by up to ten seconds at once. Windows would take one second of it.
func (d *deviceReader) paced(q quantity, value float64, r *reading) float64 {
	before, known := d.values.Get(q)
	if !known || value <= before || d.at == 0 {
		return value
	}
	return max(value-rotations, min(value, before+(r.clocks.at.Mono-d.at).Seconds()))
}

// needsReasons reports whether the reasons for which clocks are reduced are read, which takes the driver microseconds:
// for those that it does not count itself, and to spare it the counters that take it long.
func (d *deviceReader) needsReasons() bool {
	for q := range reasonBits {
		if source := d.sourceOf(q); source >= 0 && rows[source].traits&byReason != 0 || !d.counts(q) {
			return true
		}
	}
	return false
}

// counts reports whether the driver may count the time of a reason itself.
func (d *deviceReader) counts(q quantity) bool {
	for i := range rows {
		if rows[i].quantity == q && !d.unsupported[i] {
			return true
		}
	}
	return false
}

// countReasons adds up the time of each reason that the driver does not count itself. Each reading covers the time
// since the one before.
func (d *deviceReader) countReasons(r *reading) {
	now := r.clocks.at.Mono
	step := now - d.reasonsAt
	if d.reasonsAt == 0 || step > maxStep {
		step = 0
	}
	d.reasonsAt = now
	if d.reasons == anyReason {
		return
	}
	for q, bit := range reasonBits {
		if d.counts(q) || d.maker.reasons&bit == 0 {
			continue
		}
		before, _ := d.values.Get(q)
		if d.reasons&bit != 0 {
			before += step.Seconds()
		}
		d.values.Set(q, before)
	}
}
