package gpu

import (
	"errors"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// details asks for what a GPU tells beside utilisation and gauges, each thing at its own cadence.
func (d *deviceReader) readDetails(r *reading) {
	for q := range numQueries {
		spared := querySpecs[q].fallback && d.batch.provides(querySpecs[q].quantities[0])
		if !d.unsupported[q] && d.isDue(q) && !spared {
			d.readDetail(q, r)
		}
	}
	d.readReasons(r)
	d.rotation++
	r.detail = d.values
}

// due says whether it is a question's turn. The first time, everything is asked for.
func (d *deviceReader) isDue(q query) bool {
	switch querySpecs[q].each {
	case everySecond:
		return true
	case rotating:
		return !d.initialized || (d.rotation+int(q))%rotations == 0
	case once:
		return !d.initialized
	default:
		return false
	}
}

// askDetail asks one question and keeps what is possible of its answer.
func (d *deviceReader) readDetail(q query, r *reading) {
	d.result = sample.GPUValues{}
	d.do(q, r, func() error { return d.query(q, &d.result) })
	for _, quantity := range querySpecs[q].quantities {
		if value, ok := d.result.Get(quantity); ok {
			d.set(quantity, value, r)
		} else if d.initialized {
			d.drop(quantity)
		}
	}
}

// keep takes a value over that can be. It gives false for one that cannot.
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

// reason is a bit of nvmlDeviceGetCurrentClocksEventReasons, and what counts its time where the driver does not.
type reason struct {
	bit      uint64
	quantity sample.GPUQuantity
	counted  query // tells the same
}

var reasons = []reason{
	{0x4, sample.GPUThrottledPower, queryViolationPower},
	{0x20, sample.GPUThrottledThermal, queryViolationThermal},
	{0x40, sample.GPUThrottledHWThermal, numQueries},
	{0x80, sample.GPUThrottledPowerBrake, numQueries},
	{0x10, sample.GPUThrottledSyncBoost, queryViolationSyncBoost},
	{0x200, sample.GPUThrottledBoard, queryViolationBoard},
	{0x400, sample.GPUThrottledReliability, queryViolationReliability},
}

// longestStep is how much time one look at the reasons may stand for.
const maxStep = 2 * time.Second

// askReasons adds up the time in which the driver names a reason, for those that it does not count itself. Each look
// stands for the time since the one before.
func (d *deviceReader) readReasons(r *reading) {
	missing := false
	for _, s := range reasons {
		missing = missing || d.needsSampling(s)
	}
	if !missing {
		return
	}
	var bits uint64
	told := false
	d.do(queryReasons, r, func() (err error) {
		bits, err = d.clockEventReasons()
		told = err == nil
		return err
	})
	now := r.clocks.at.Mono
	step := now - d.reasonsAt
	if d.reasonsAt == 0 || step > maxStep {
		step = 0
	}
	d.reasonsAt = now
	if told && !r.valid("throttle reasons", bits < 1<<32) {
		told = false
	}
	for _, s := range reasons {
		if !d.needsSampling(s) || !told {
			continue
		}
		before, _ := d.values.Get(s.quantity)
		if bits&s.bit != 0 {
			before += step.Seconds()
		}
		d.values.Set(s.quantity, before)
	}
}

func (d *deviceReader) needsSampling(s reason) bool {
	return !d.batch.provides(s.quantity) && (s.counted == numQueries || d.unsupported[s.counted])
}

// isLacking says that asking again is of no use.
func isUnsupported(err error) bool {
	return errors.Is(err, codeNotSupported) || errors.Is(err, codeFunctionNotFound) || errors.Is(err, codeInvalidArgument)
}
