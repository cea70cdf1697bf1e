package gpu

import (
	"errors"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// readDetails makes the queries of details that are due.
func (d *deviceReader) readDetails(r *reading) {
	for q := range numQueries {
		spared := callRows[q].traits&fallback != 0 && d.batch.provides(callRows[q].quantity)
		if !d.unsupported[q] && d.isDue(q) && !spared {
			d.readDetail(q, r)
		}
	}
	d.countReasons(r)
	d.rotation++
	r.detail = d.values
}

// isDue reports whether a query is due. In the first reading all are.
func (d *deviceReader) isDue(q query) bool {
	switch callRows[q].each {
	case everySecond:
		return true
	case rotating:
		return !d.initialized || d.hasTurn(int(q))
	case once:
		return !d.initialized
	default:
		return false
	}
}

// hasTurn reports whether a reading is the turn of number n: each number has one of ten readings.
func (d *deviceReader) hasTurn(n int) bool { return (d.rotation+n)%rotations == 0 }

// readDetail makes one query and keeps the valid values of its result.
func (d *deviceReader) readDetail(q query, r *reading) {
	d.result = sample.GPUValues{}
	d.do(q, r, func() error { return d.query(q, &d.result) })
	for _, quantity := range callRows[q].quantities() {
		if value, ok := d.result.Get(quantity); ok {
			d.set(quantity, value, r)
		} else if d.initialized {
			d.drop(quantity)
		}
	}
}

// set keeps a valid value. It drops the quantity and returns false if the value is garbage.
func (d *deviceReader) set(q sample.GPUQuantity, value float64, r *reading) bool {
	s := ranges[q]
	if !r.valid(q.String(), s.contains(value) && d.counters[q].accept(value, r.clocks.at.Mono, s.maxGrowth)) {
		d.drop(q)
		return false
	}
	d.values.Set(q, value)
	return true
}

func (d *deviceReader) drop(q sample.GPUQuantity) {
	if q < sample.GPUQuantities {
		d.values.Drop(q)
	}
}

const (
	// maxStep bounds the time that one reading covers, of the reasons or of power.
	maxStep = 2 * time.Second
	// anyReason stands for reasons that are not known.
	anyReason = 1<<64 - 1
)

// readReasons reads why the clocks are reduced, which takes the driver microseconds: for the reasons that it does not
// count itself, and to spare it the counters that take it long.
func (d *deviceReader) readReasons(r *reading) {
	d.reasons, d.reasonsBefore = anyReason, d.reasons
	if d.initialized && !slices.ContainsFunc(reasons, func(s reason) bool {
		return d.needsSampling(s) || d.batch.has(s.quantity, rarely)
	}) {
		return
	}
	d.do(queryReasons, r, func() error {
		bits, err := d.clockEventReasons()
		if err == nil && r.valid("throttle reasons", bits < 1<<32) {
			d.reasons = bits
		}
		return err
	})
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
	for _, s := range reasons {
		if !d.needsSampling(s) {
			continue
		}
		before, _ := d.values.Get(s.quantity)
		if d.reasons&s.bit != 0 {
			before += step.Seconds()
		}
		d.values.Set(s.quantity, before)
	}
}

func (d *deviceReader) needsSampling(s reason) bool {
	return !d.batch.provides(s.quantity) && (s.counted == numQueries || d.unsupported[s.counted])
}

// isUnsupported reports whether an error means that the query need not be repeated.
func isUnsupported(err error) bool {
	return errors.Is(err, codeNotSupported) || errors.Is(err, codeFunctionNotFound) || errors.Is(err, codeInvalidArgument)
}
