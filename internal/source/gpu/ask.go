package gpu

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/stallspan/stallspan/internal/sample"
)

// question is something that a GPU may be asked for.
type question int32

const (
	askSamples question = iota
	askRate
	askMemory
	askTemperature
	askPower
	askEnergy
	askLink
	askLinkMax
	askProcesses
	questions // how many there are
)

// calls are the names under which people find the questions in NVIDIA's documents.
var calls = [questions]string{"nvmlDeviceGetSamples", "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetMemoryInfo",
	"nvmlDeviceGetTemperature", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetTotalEnergyConsumption",
	"nvmlDeviceGetCurrPcieLinkWidth", "nvmlDeviceGetMaxPcieLinkWidth", "nvmlDeviceGetComputeRunningProcesses"}

func (q question) String() string { return calls[q] }

// asked is a device with what it was found not to answer, which it is not asked for again. It belongs to the thread that
// calls the device; now may be read by others.
type asked struct {
	device
	lacks [questions]bool
	met   bool         // it was asked for what does not change
	now   atomic.Int32 // the question that the driver works on
}

// reading is what one device said in one go.
type reading struct {
	clocks clocks // right after the points were given

	points     []point // new in the driver's buffer
	rate       float64 // where the buffer gave nothing
	hasRate    bool
	unanswered bool            // neither could be had, although the driver has them
	lacks      [questions]bool // never answered
	asked      bool            // for gauges
	gauges     sample.GPU      // with Has for those that were told
	procs      []sample.GPUProcess
	failed     error          // the device or the whole driver is gone
	problems   []error        // what could not be told although it can be, and what was no possible value
	garbage    map[string]int // values outside their physical range, by what they were of
}

// wants says what to ask beside utilisation.
type wants struct {
	since     uint64 // newest timestamp of the driver that is known
	noBuffer  bool   // the buffer gave nothing for long
	gauges    bool
	processes bool
}

// read asks a device. It stops as soon as that is found to be gone.
func (a *asked) read(driver driver, w wants) *reading {
	r := &reading{gauges: sample.GPU{ID: a.id()}}
	a.utilization(driver, w, r)
	if w.gauges {
		r.asked = true
		a.gauges(r)
	}
	if !a.met {
		a.limits(r)
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

// utilization asks for the driver's buffer, and for its last value alone where that gives nothing.
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
	if told && !w.noBuffer || len(r.points) > 0 {
		return
	}
	a.ask(askRate, r, func() (err error) {
		r.rate, err = a.rate()
		r.hasRate = err == nil
		return err
	})
	r.unanswered = !told && !idles && !r.hasRate
	r.clocks = driver.clocks()
}

func (a *asked) gauges(r *reading) {
	g := &r.gauges
	a.ask(askMemory, r, func() error {
		used, total, err := a.memory()
		if err == nil && r.possible("memory", total > 0 && total < 1<<50 && used <= total) {
			g.MemoryUsed, g.MemoryTotal, g.Has = used, total, g.Has|sample.HasMemory
		}
		return err
	})
	a.ask(askTemperature, r, func() error {
		value, err := a.temperature()
		if err == nil && r.possible("temperature", value >= -50 && value <= 200) {
			g.Temperature, g.Has = value, g.Has|sample.HasTemperature
		}
		return err
	})
	a.ask(askPower, r, func() error {
		value, err := a.power()
		if err == nil && r.possible("power", value >= 0 && value <= mostPower) {
			g.Power, g.Has = value, g.Has|sample.HasPower
		}
		return err
	})
	a.ask(askEnergy, r, func() error {
		value, err := a.energy()
		if err == nil && r.possible("energy", value >= 0 && value <= mostEnergy) {
			g.Energy, g.Has = value, g.Has|sample.HasEnergy
		}
		return err
	})
	a.ask(askLink, r, func() error {
		width, generation, err := a.link()
		if err == nil && r.possible("PCIe link", possibleLink(width, generation)) {
			g.LinkWidth, g.LinkGeneration, g.Has = width, generation, g.Has|sample.HasLink
		}
		return err
	})
}

// limits asks for what does not change.
func (a *asked) limits(r *reading) {
	a.ask(askLinkMax, r, func() error {
		width, generation, err := a.linkMax()
		if err == nil && r.possible("PCIe link", possibleLink(width, generation)) {
			r.gauges.LinkWidthMax, r.gauges.LinkGenerationMax = width, generation
			r.gauges.Has |= sample.HasLinkMax
		}
		return err
	})
}

const (
	mostPower  = 10_000                           // watts; no GPU takes as much
	mostEnergy = mostPower * 30 * 365 * 24 * 3600 // joules, in thirty years
)

func possibleLink(width, generation int) bool {
	return width > 0 && width <= 64 && generation > 0 && generation <= 16
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
	case errors.Is(err, codeNotSupported), errors.Is(err, codeFunctionNotFound):
		a.lacks[q] = true
	case isGone(err), isEnded(err):
		r.failed = err
	default:
		r.problems = append(r.problems, fmt.Errorf("GPU %s: %s: %w", a.id(), q, err))
	}
}

// isGone says that one GPU is.
func isGone(err error) bool {
	return errors.Is(err, codeLost) || errors.Is(err, codeResetRequired)
}

// isEnded says that the session with the driver has.
func isEnded(err error) bool {
	return errors.Is(err, codeUninitialized) || errors.Is(err, codeDriverNotLoaded)
}
