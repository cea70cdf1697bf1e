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
type deviceReader struct {
	device
	unsupported [numQueries]bool
	succeeded   [numQueries]bool // at least once
	initialized bool             // it was asked for everything once
	current     atomic.Int32     // the question that the driver works on

	values    sample.GPUValues // what was told last
	result    sample.GPUValues // the answer to one question
	counters  [sample.GPUQuantities]counter
	batch     batch
	gpm       gpmState
	reasonsAt time.Duration // of the newest look; 0 for none
	rotation  int           // of the questions that take turns
	last      reading
}

func newDeviceReader(device device) *deviceReader {
	d := &deviceReader{device: device, batch: newBatch(), gpm: newGPMState()}
	if device.parent() == "" {
		return d
	}
	for q := range numQueries {
		d.unsupported[q] = !querySpecs[q].onMIG
	}
	d.batch = batch{}
	return d
}

// anew is the same device, of which nothing is known but that its errors are told as events.
func (d *deviceReader) reset() *deviceReader {
	fresh := newDeviceReader(d.device)
	fresh.unsupported[queryXIDs] = fresh.unsupported[queryXIDs] || d.initialized
	return fresh
}

// reading is what one device said in one go.
type reading struct {
	clocks clocks // right after the points were given

	points            []utilSample // new in the driver's buffer
	rate              float64      // where the buffer gave nothing
	hasRate           bool
	utilizationFailed bool             // neither could be had, although the driver has them
	unsupported       [numQueries]bool // never answered
	controller        float64          // percent; with hasRate
	hasDetails        bool             // for gauges and details
	gauges            sample.GPU       // with Has for those that were told
	detail            sample.GPUValues
	processes         []sample.GPUProcess
	failed            error          // the device or the whole driver is gone
	problems          []error        // what could not be told although it can be, and what was no possible value
	garbage           map[string]int // values outside their physical range, by what they were of
}

// wants says what to ask beside utilisation.
type request struct {
	since     uint64 // newest timestamp of the driver that is known
	wantRate  bool   // the buffer gave nothing for long
	reset     bool   // nobody learned of the time before
	gauges    bool   // and details
	power     bool   // the energy of two moments is not known
	processes bool
}

// read asks a device. It stops as soon as that is found to be gone. What it gives holds until the next reading.
func (d *deviceReader) read(driver driver, w request) *reading {
	r := &d.last
	*r = reading{gauges: sample.GPU{ID: d.id()}}
	d.readUtilization(driver, w, r)
	if w.reset {
		d.gpm.at, d.reasonsAt = 0, 0
	}
	if w.gauges {
		r.hasDetails = true
		d.readGPM(r) // before the fields, whose counters it helps to understand
		d.readFields(r)
		d.readGauges(w, r)
		if !d.initialized {
			d.readLimits(r)
		}
		d.readDetails(r)
		d.initialized = true
	}
	if w.processes {
		d.do(queryProcesses, r, func() (err error) {
			r.processes, err = d.processes()
			return err
		})
	}
	r.unsupported = d.unsupported
	return r
}

// utilization asks for the driver's buffer, and for its last value alone where that gives nothing. That value comes with
// the memory controller's, for which there is no buffer on every GPU.
func (d *deviceReader) readUtilization(driver driver, w request, r *reading) {
	told, idles := false, false
	d.do(querySamples, r, func() (err error) {
		r.points, err = d.samples(w.since)
		told = err == nil
		if idles = errors.Is(err, codeNotFound); idles {
			return nil
		}
		return err
	})
	r.clocks = driver.clocks()
	enough := told && !w.wantRate || len(r.points) > 0
	if enough && !w.gauges {
		return
	}
	rated := false
	d.do(queryRates, r, func() (err error) {
		r.rate, r.controller, err = d.utilizationRates()
		rated = err == nil
		return err
	})
	if w.gauges {
		d.drop(sample.GPUController)
		if rated {
			d.set(sample.GPUController, r.controller/100, r)
		}
	}
	if enough {
		return
	}
	r.hasRate = rated
	r.utilizationFailed = !told && !idles && !rated
	r.clocks = driver.clocks()
}

// possible counts what cannot be.
func (r *reading) valid(what string, ok bool) bool {
	if !ok {
		if r.garbage == nil {
			r.garbage = map[string]int{}
		}
		r.garbage[what]++
	}
	return ok
}

// ask puts one question, unless the device is known not to answer it, or was found to be gone.
func (d *deviceReader) do(q query, r *reading, put func() error) {
	if r.failed != nil || d.unsupported[q] {
		return
	}
	d.current.Store(int32(q))
	err := put()
	switch {
	case err == nil:
		d.succeeded[q] = true
	case d.isRemovedMIG(q, err):
		r.failed = err
	case errors.Is(err, codeNotSupported), errors.Is(err, codeFunctionNotFound), q >= queryXIDs && isUnsupported(err):
		d.unsupported[q] = true
	case q >= queryXIDs && errors.Is(err, codeNoPermission): // some GPUs tell details to root alone; that is said once
		d.unsupported[q] = true
		r.problems = append(r.problems, fmt.Errorf("GPU %s: %s: %w", d.id(), q, err))
	case isLost(err), isSessionEnded(err):
		r.failed = err
	default:
		r.problems = append(r.problems, fmt.Errorf("GPU %s: %s: %w", d.id(), q, err))
	}
}

// isTakenAway says that a slice is no more: what it answered before it does not know now. Which error that gives is
// written nowhere.
func (d *deviceReader) isRemovedMIG(q query, err error) bool {
	return d.succeeded[q] && d.parent() != "" && (errors.Is(err, codeNotFound) || errors.Is(err, codeInvalidArgument))
}

// isGone says that one GPU is.
func isLost(err error) bool {
	return errors.Is(err, codeLost) || errors.Is(err, codeResetRequired)
}

// isEnded says that the session with the driver has.
func isSessionEnded(err error) bool {
	return errors.Is(err, codeUninitialized) || errors.Is(err, codeDriverNotLoaded)
}
