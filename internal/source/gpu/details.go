package gpu

import (
	"errors"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// details asks for what a GPU tells beside utilisation and gauges, each thing at its own cadence.
func (a *asked) details(r *reading) {
	for q := range questions {
		spared := plans[q].spare && a.batch.tells(plans[q].tells[0])
		if !a.lacks[q] && a.due(q) && !spared {
			a.askDetail(q, r)
		}
	}
	a.askReasons(r)
	a.turn++
	r.detail = a.known
}

// due says whether it is a question's turn. The first time, everything is asked for.
func (a *asked) due(q question) bool {
	switch plans[q].each {
	case eachSecond:
		return true
	case inTurn:
		return !a.met || (a.turn+int(q))%turns == 0
	case once:
		return !a.met
	default:
		return false
	}
}

// askDetail asks one question and keeps what is possible of its answer.
func (a *asked) askDetail(q question, r *reading) {
	a.told = sample.GPUValues{}
	a.ask(q, r, func() error { return a.tell(q, &a.told) })
	for _, quantity := range plans[q].tells {
		if value, ok := a.told.Get(quantity); ok {
			a.keep(quantity, value, r)
		} else if a.met {
			a.drop(quantity)
		}
	}
}

// keep takes a value over that can be. It gives false for one that cannot.
func (a *asked) keep(q sample.GPUQuantity, value float64, r *reading) bool {
	s := ranges[q]
	if !r.possible(q.String(), s.holds(value) && a.counters[q].grew(value, r.clocks.at.Mono, s.growth)) {
		a.drop(q)
		return false
	}
	a.known.Set(q, value)
	return true
}

func (a *asked) drop(q sample.GPUQuantity) {
	if q < sample.GPUQuantities {
		a.known.Drop(q)
	}
}

// reason is a bit of nvmlDeviceGetCurrentClocksEventReasons, and what counts its time where the driver does not.
type reason struct {
	bit      uint64
	quantity sample.GPUQuantity
	counted  question // tells the same
}

var reasons = []reason{
	{0x4, sample.GPUThrottledPower, askViolationPower},
	{0x20, sample.GPUThrottledThermal, askViolationThermal},
	{0x40, sample.GPUThrottledHWThermal, questions},
	{0x80, sample.GPUThrottledPowerBrake, questions},
	{0x10, sample.GPUThrottledSyncBoost, askViolationSyncBoost},
	{0x200, sample.GPUThrottledBoard, askViolationBoard},
	{0x400, sample.GPUThrottledReliability, askViolationReliability},
}

// longestStep is how much time one look at the reasons may stand for.
const longestStep = 2 * time.Second

// askReasons adds up the time in which the driver names a reason, for those that it does not count itself. Each look
// stands for the time since the one before.
func (a *asked) askReasons(r *reading) {
	missing := false
	for _, s := range reasons {
		missing = missing || a.uncounted(s)
	}
	if !missing {
		return
	}
	var bits uint64
	told := false
	a.ask(askReasons, r, func() (err error) {
		bits, err = a.reasons()
		told = err == nil
		return err
	})
	now := r.clocks.at.Mono
	step := now - a.reasonsAt
	if a.reasonsAt == 0 || step > longestStep {
		step = 0
	}
	a.reasonsAt = now
	if told && !r.possible("throttle reasons", bits < 1<<32) {
		told = false
	}
	for _, s := range reasons {
		if !a.uncounted(s) || !told {
			continue
		}
		before, _ := a.known.Get(s.quantity)
		if bits&s.bit != 0 {
			before += step.Seconds()
		}
		a.known.Set(s.quantity, before)
	}
}

func (a *asked) uncounted(s reason) bool {
	return !a.batch.tells(s.quantity) && (s.counted == questions || a.lacks[s.counted])
}

// isLacking says that asking again is of no use.
func isLacking(err error) bool {
	return errors.Is(err, codeNotSupported) || errors.Is(err, codeFunctionNotFound) || errors.Is(err, codeInvalidArgument)
}
