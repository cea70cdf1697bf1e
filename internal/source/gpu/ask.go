package gpu

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// asked is a device with what it was found not to answer, which it is not asked for again. It belongs to the thread that
// calls the device; now may be read by others.
type asked struct {
	device
	lacks    [questions]bool
	answered [questions]bool // at least once
	met      bool            // it was asked for everything once
	now      atomic.Int32    // the question that the driver works on

	known     sample.GPUValues // what was told last
	told      sample.GPUValues // the answer to one question
	counters  [sample.GPUQuantities]counter
	batch     batch
	gpm       profile
	reasonsAt time.Duration // of the newest look; 0 for none
	turn      int           // of the questions that take turns
	last      reading
}

func newAsked(d device) *asked {
	a := &asked{device: d, batch: newBatch(), gpm: newProfile()}
	if d.parent() == "" {
		return a
	}
	for q := range questions {
		a.lacks[q] = !plans[q].slices
	}
	a.batch = batch{}
	return a
}

// anew is the same device, of which nothing is known but that its errors are told as events.
func (a *asked) anew() *asked {
	fresh := newAsked(a.device)
	fresh.lacks[askXIDs] = fresh.lacks[askXIDs] || a.met
	return fresh
}

// reading is what one device said in one go.
type reading struct {
	clocks clocks // right after the points were given

	points     []point // new in the driver's buffer
	rate       float64 // where the buffer gave nothing
	hasRate    bool
	unanswered bool            // neither could be had, although the driver has them
	lacks      [questions]bool // never answered
	controller float64         // percent; with hasRate
	asked      bool            // for gauges and details
	gauges     sample.GPU      // with Has for those that were told
	detail     sample.GPUValues
	procs      []sample.GPUProcess
	failed     error          // the device or the whole driver is gone
	problems   []error        // what could not be told although it can be, and what was no possible value
	garbage    map[string]int // values outside their physical range, by what they were of
}

// wants says what to ask beside utilisation.
type wants struct {
	since     uint64 // newest timestamp of the driver that is known
	noBuffer  bool   // the buffer gave nothing for long
	anew      bool   // nobody learned of the time before
	gauges    bool   // and details
	power     bool   // the energy of two moments is not known
	processes bool
}

// read asks a device. It stops as soon as that is found to be gone. What it gives holds until the next reading.
func (a *asked) read(driver driver, w wants) *reading {
	r := &a.last
	*r = reading{gauges: sample.GPU{ID: a.id()}}
	a.utilization(driver, w, r)
	if w.anew {
		a.gpm.at, a.reasonsAt = 0, 0
	}
	if w.gauges {
		r.asked = true
		a.askGPM(r) // before the fields, whose counters it helps to understand
		a.askFields(r)
		a.gauges(w, r)
		if !a.met {
			a.limits(r)
		}
		a.details(r)
		a.met = true
	}
	if w.processes {
		a.ask(askProcesses, r, func() (err error) {
			r.procs, err = a.processes()
			return err
		})
	}
	r.lacks = a.lacks
	return r
}

// utilization asks for the driver's buffer, and for its last value alone where that gives nothing. That value comes with
// the memory controller's, for which there is no buffer on every GPU.
func (a *asked) utilization(driver driver, w wants, r *reading) {
	told, idles := false, false
	a.ask(askSamples, r, func() (err error) {
		r.points, err = a.samples(w.since)
		told = err == nil
		if idles = errors.Is(err, codeNotFound); idles {
			return nil
		}
		return err
	})
	r.clocks = driver.clocks()
	enough := told && !w.noBuffer || len(r.points) > 0
	if enough && !w.gauges {
		return
	}
	rated := false
	a.ask(askRate, r, func() (err error) {
		r.rate, r.controller, err = a.rate()
		rated = err == nil
		return err
	})
	if w.gauges {
		a.drop(sample.GPUController)
		if rated {
			a.keep(sample.GPUController, r.controller/100, r)
		}
	}
	if enough {
		return
	}
	r.hasRate = rated
	r.unanswered = !told && !idles && !rated
	r.clocks = driver.clocks()
}

// possible counts what cannot be.
func (r *reading) possible(what string, ok bool) bool {
	if !ok {
		if r.garbage == nil {
			r.garbage = map[string]int{}
		}
		r.garbage[what]++
	}
	return ok
}

// ask puts one question, unless the device is known not to answer it, or was found to be gone.
func (a *asked) ask(q question, r *reading, put func() error) {
	if r.failed != nil || a.lacks[q] {
		return
	}
	a.now.Store(int32(q))
	err := put()
	switch {
	case err == nil:
		a.answered[q] = true
	case a.isTakenAway(q, err):
		r.failed = err
	case errors.Is(err, codeNotSupported), errors.Is(err, codeFunctionNotFound), q >= askXIDs && isLacking(err):
		a.lacks[q] = true
	case q >= askXIDs && errors.Is(err, codeNoPermission): // some GPUs tell details to root alone; that is said once
		a.lacks[q] = true
		r.problems = append(r.problems, fmt.Errorf("GPU %s: %s: %w", a.id(), q, err))
	case isGone(err), isEnded(err):
		r.failed = err
	default:
		r.problems = append(r.problems, fmt.Errorf("GPU %s: %s: %w", a.id(), q, err))
	}
}

// isTakenAway says that a slice is no more: what it answered before it does not know now. Which error that gives is
// written nowhere.
func (a *asked) isTakenAway(q question, err error) bool {
	return a.answered[q] && a.parent() != "" && (errors.Is(err, codeNotFound) || errors.Is(err, codeInvalidArgument))
}

// isGone says that one GPU is.
func isGone(err error) bool {
	return errors.Is(err, codeLost) || errors.Is(err, codeResetRequired)
}

// isEnded says that the session with the driver has.
func isEnded(err error) bool {
	return errors.Is(err, codeUninitialized) || errors.Is(err, codeDriverNotLoaded)
}
