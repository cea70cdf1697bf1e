package gpu

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// deviceReader reads one device, and remembers which queries it does not support. It belongs to the thread that calls
// the device, except current.
type deviceReader struct {
	device
	unsupported [numQueries]bool
	succeeded   [numQueries]bool // at least once
	initialized bool             // all queries were made once
	current     atomic.Int32     // the query in progress

	values   sample.GPUValues // the newest of each
	result   sample.GPUValues // of one query
	counters [sample.GPUQuantities]counter
	batch    batch
	gpm      gpmState
	rotation int // position in the rotation of queries
	last     reading

	machine       *machine
	hollow        bool // the driver reports that it has no memory: other zeros mean nothing, either
	shared        bool // its memory is the machine's
	lacking       bool // the library has no function for a query
	averagesPower bool // power is a mean of about a second (nvml.h)
	sparesEnergy  bool // the newest reading had it, and energy

	reasons, reasonsBefore uint64        // bits of the newest reading and the one before, or anyReason
	reasonsAt              time.Duration // the newest reading of details; 0 for none
}

func newDeviceReader(device device) *deviceReader {
	d := &deviceReader{device: device, batch: newBatch(), gpm: newGPMState(), reasons: anyReason}
	d.rotation = device.index() // so that several GPUs do not have the same turns at once
	if device.parent() == "" {
		return d
	}
	for q := range numQueries {
		d.unsupported[q] = callRows[q].traits&onMIG == 0
	}
	d.batch = batch{}
	return d
}

// reset returns a new reader of the same device, which keeps its registration for XID events.
func (d *deviceReader) reset() *deviceReader {
	fresh := newDeviceReader(d.device)
	fresh.machine = d.machine
	fresh.unsupported[queryXIDs] = fresh.unsupported[queryXIDs] || d.initialized
	return fresh
}

// reading is the result of reading one device.
type reading struct {
	clocks clocks // right after the samples were read

	points            []utilSample // new in the driver's buffer
	rate              float64      // current utilization in percent, if the buffer was empty
	hasRate           bool
	utilizationFailed bool             // neither could be read, although supported
	hollow            bool             // the utilization means nothing
	unsupported       [numQueries]bool // never successful
	controller        float64          // percent; with hasRate
	hasDetails        bool             // gauges and details were read
	onlyMemory        bool             // nothing else was read
	gauges            sample.GPU       // with Has for those that were read
	meanPower         bool             // gauges.Power is a mean of about a second
	energySpared      bool             // energy was not due
	detail            sample.GPUValues
	processes         []sample.GPUProcess
	processesRead     bool
	answered          bool           // a query succeeded
	failed            error          // the device or the session is lost
	problems          []error        // failures of supported queries
	garbage           map[string]int // values outside their physical range, by name
}

// request says what to read apart from utilization samples.
type request struct {
	since     uint64 // newest known timestamp of the driver
	wantRate  bool   // the buffer was empty for long
	reset     bool   // discard the readings before: there was a gap
	gauges    bool   // and details
	power     bool   // read power, because energy is known at fewer than two times
	processes bool

	onlyMemory bool // and nothing else of this
}

// read reads a device. It stops if the device is found to be lost. The result is valid until the next call.
func (d *deviceReader) read(driver driver, w request) *reading {
	r := &d.last
	*r = reading{gauges: sample.GPU{ID: d.id()}}
	if w.onlyMemory {
		d.readMemory(driver, r)
		return r
	}
	if !d.initialized && w.gauges { // it shows whether other answers mean anything
		d.readMemoryUse(r)
	}
	d.readUtilization(driver, w, r)
	if w.reset {
		d.gpm.at, d.reasonsAt, d.batch.at = 0, 0, 0
		d.reasons, d.sparesEnergy = anyReason, false
	}
	if w.gauges {
		r.hasDetails = true
		d.readGPM(r)     // before the fields: its rates help to unwrap their counters
		d.readReasons(r) // before the fields: it says which counters grow
		d.readFields(r)
		d.readGauges(w, r)
		if !d.initialized {
			d.readLimits(r)
		}
		d.readDetails(r)
		d.initialized = true
	}
	if w.processes {
		r.processes, r.processesRead = d.listProcesses(r), true
	}
	r.unsupported = d.unsupported
	return r
}

// readUtilization reads the driver's sample buffer, and the current rate if the buffer is empty. The rate comes with
// the memory controller's, which has no buffer on every GPU.
func (d *deviceReader) readUtilization(driver driver, w request, r *reading) {
	if d.readLoad(driver, r) {
		return
	}
	ok, idles := false, false
	d.do(querySamples, r, func() (err error) {
		r.points, err = d.samples(w.since)
		ok = err == nil
		if idles = errors.Is(err, codeNotFound); idles {
			return nil
		}
		return err
	})
	r.clocks = driver.clocks()
	enough := (ok || idles) && !w.wantRate || len(r.points) > 0
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
	r.hasRate = rated || r.hasRate
	r.utilizationFailed = !ok && !idles && !r.hasRate
	r.clocks = driver.clocks()
}

// valid counts a value as garbage unless ok is set, which it returns.
func (r *reading) valid(what string, ok bool) bool {
	if !ok {
		if r.garbage == nil {
			r.garbage = map[string]int{}
		}
		r.garbage[what]++
	}
	return ok
}

// do makes one query, unless the device does not support it or was found to be lost.
func (d *deviceReader) do(q query, r *reading, put func() error) {
	if r.failed != nil || d.unsupported[q] {
		return
	}
	d.current.Store(int32(q))
	err := put()
	switch {
	case err == nil:
		d.succeeded[q], r.answered = true, true
	case d.isRemovedMIG(q, err):
		r.failed = err
	case errors.Is(err, codeFunctionNotFound):
		d.unsupported[q], d.lacking = true, true
	case errors.Is(err, codeNotSupported), q >= queryXIDs && isUnsupported(err):
		d.unsupported[q] = true
	case q >= queryXIDs && errors.Is(err, codeNoPermission): // on some GPUs only root can read details; reported once
		d.unsupported[q] = true
		r.problems = append(r.problems, fmt.Errorf("GPU %s: %s: %w", d.id(), q, err))
	case isLost(err), isSessionEnded(err):
		r.failed = err
	default:
		r.problems = append(r.problems, fmt.Errorf("GPU %s: %s: %w", d.id(), q, err))
	}
}

// isRemovedMIG reports whether an error means that a MIG device was destroyed: a query that succeeded before is unknown
// now. NVML does not document which error that is.
func (d *deviceReader) isRemovedMIG(q query, err error) bool {
	return d.succeeded[q] && d.parent() != "" && (errors.Is(err, codeNotFound) || errors.Is(err, codeInvalidArgument))
}

// isLost reports whether an error means that one GPU is lost.
func isLost(err error) bool {
	return errors.Is(err, codeLost) || errors.Is(err, codeResetRequired)
}

// isSessionEnded reports whether an error means that the session with the driver has ended.
func isSessionEnded(err error) bool {
	return errors.Is(err, codeUninitialized) || errors.Is(err, codeDriverNotLoaded)
}
