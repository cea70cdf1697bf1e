package gpu

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// answer is a number to read, and then the result.
type answer struct {
	row    int // in rows
	number float64
	narrow bool // 32 bits wide
	err    error
}

// deviceReader reads one device, and remembers what it does not support. It belongs to the thread that calls the
// device, except current.
type deviceReader struct {
	device
	*identity
	unsupported []bool       // by row
	succeeded   []bool       // by row: at least once
	source      [nothing]int // by quantity: the row that provides it, from 1; 0 for none yet
	initialized bool         // everything was read once
	current     atomic.Int32 // the row in progress
	hung        int          // the row whose call did not return in time, from 1; 0 for none
	rotation    int          // readings so far, from a number that differs between GPUs
	list        []answer     // of one call
	last        reading

	values   sample.GPUValues // the newest of each quantity
	counters [nothing]counter
	wraps    [nothing]unwrapper
	sums     [nothing]float64 // of rates that are added up
	at       time.Duration    // of the newest reading of values; 0 for none, and after a gap
	sampled  time.Duration    // of the newest sample of GPM; 0 for none

	machine      *machine
	hollow       bool // the driver reports that it has no memory: other zeros mean nothing, either
	shared       bool // its memory is the machine's
	partitioned  bool // it has MIG devices
	lacking      bool // the library has no function for something
	sparesEnergy bool // the newest reading had the mean of power, and energy

	reasons, reasonsBefore uint64        // bits of the newest reading and the one before, or anyReason
	reasonsAt              time.Duration // of the newest reading of them; 0 for none
}

func newDeviceReader(device device) *deviceReader {
	d := &deviceReader{device: device, identity: device.about(), unsupported: make([]bool, len(rows)),
		succeeded: make([]bool, len(rows)),
		rotation:  device.about().index, // so that several GPUs do not have the same turns at once
		reasons:   anyReason}
	for i, p := range rows {
		d.unsupported[i] = d.parent != "" && p.traits&onMIG == 0 || !d.maker.asks(p)
	}
	return d
}

// hungAgain notes that the call for a row did not return in time. After the second time it is not made again, unless it
// is that for busy time.
func (d *deviceReader) hungAgain(row int) bool {
	again := d.hung == row+1 && row != sampleRows.from
	d.hung = row + 1
	for i := range rows {
		if again && rows[i].call == rows[row].call {
			d.lose(i)
		}
	}
	return again
}

// lose has a row not read again. Another one may provide its quantity.
func (d *deviceReader) lose(i int) {
	d.unsupported[i] = true
	if q := rows[i].quantity; d.sourceOf(q) == i {
		d.source[q] = 0
	}
}

// reset returns a new reader of the same device, which keeps its registration for XID events.
func (d *deviceReader) reset() *deviceReader {
	fresh := newDeviceReader(d.device)
	fresh.machine = d.machine
	fresh.unsupported[eventRows.from] = fresh.unsupported[eventRows.from] || d.initialized
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
	lacksBuffer       bool             // the driver has no sample buffer
	silent            bool             // the device reports no utilization
	hasDetails        bool             // gauges and details were read
	onlyMemory        bool             // nothing else was read
	gauges            sample.GPU       // with Has for those that were read
	meanPower         bool             // gauges.Power is a mean of about a second
	energySpared      bool             // energy was not due
	detail            sample.GPUValues // without those that are no details
	processes         []sample.GPUProcess
	processesRead     bool
	lacksProcesses    bool           // they are not supported
	answered          bool           // a call succeeded
	failed            error          // the device or the session is lost
	problems          []error        // failures of what is supported
	garbage           map[string]int // values that cannot be, by name

	requested, got uint64 // bits of quantities that were due, and that were read
}

// request says what to read apart from utilization samples.
type request struct {
	newest    uint64 // newest known timestamp of the driver
	since     uint64 // that, or 0 for all that the driver has
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
	*r = reading{onlyMemory: w.onlyMemory}
	if w.reset {
		d.at, d.sampled, d.reasonsAt = 0, 0, 0
		d.reasons, d.sparesEnergy = anyReason, false
	}
	if w.gauges || w.onlyMemory { // first, as it shows whether other answers mean anything
		r.clocks = driver.clocks()
		d.readMemoryUse(w, r)
	}
	if w.onlyMemory {
		return r
	}
	d.readUtilization(driver, w, r)
	if w.gauges {
		d.readAll(w, r)
	}
	if w.processes {
		r.processes, r.processesRead = d.listProcesses(r), true
	}
	r.lacksBuffer = d.unsupported[sampleRows.from]
	r.silent = r.lacksBuffer && d.unsupported[rateRows.from] && !r.hasRate
	r.lacksProcesses = d.unsupported[processRows.from]
	return r
}

// readUtilization reads the driver's sample buffer, and the current rate if the buffer is empty. The rate comes with
// the memory controller's, which has no buffer on every GPU.
func (d *deviceReader) readUtilization(driver driver, w request, r *reading) {
	if d.readLoad(driver, r) {
		return
	}
	ok, idles := false, false
	d.do(sampleRows, r, func() (err error) {
		r.points, err = d.samples(w.since)
		ok = err == nil
		if idles = errors.Is(err, codeNotFound); idles {
			return nil
		}
		return err
	})
	if n := len(r.points); n > 0 && r.points[n-1].timestamp == w.newest { // a driver may return what is known again
		r.points = nil
	}
	r.clocks = driver.clocks()
	enough := (ok || idles) && !w.wantRate || len(r.points) > 0
	if enough && !w.gauges {
		return
	}
	d.readRows(rateRows, w, r)
	rate, rated := d.got(busyRate, r)
	confirmed := ok || idles && d.unsupported[rateRows.from] // an empty buffer is that of an idle GPU, or of a silent one
	r.utilizationFailed = len(r.points) == 0 && !rated && !r.hasRate && !confirmed
	if enough {
		return
	}
	if rated {
		r.rate, r.hasRate = rate, true
	}
	r.clocks = driver.clocks()
}

// readAll reads the rows that are due, and makes gauges and details of them.
func (d *deviceReader) readAll(w request, r *reading) {
	r.hasDetails = true
	d.reasons, d.reasonsBefore = anyReason, d.reasons
	for _, s := range calls {
		if s != sampleRows && s != rateRows && s != memoryRows && s != processRows {
			d.readRows(s, w, r)
		}
		if bits, known := d.got(throttleReasons, r); known {
			d.reasons = uint64(bits)
		}
	}
	d.countReasons(r)
	d.setGauges(r)
	d.initialized, d.at = true, r.clocks.at.Mono
	d.rotation++
	r.detail = d.values
	for q := sample.GPUQuantities; q < nothing; q++ {
		r.detail.Drop(q)
	}
	for rate, counter := range counterOf {
		if d.source[counter] != 0 {
			r.detail.Drop(rate)
		}
	}
}

// setGauges takes over what is not a detail.
func (d *deviceReader) setGauges(r *reading) {
	g := &r.gauges
	known := func(has sample.GPUFields, list ...quantity) bool {
		for _, q := range list {
			if _, known := d.values.Get(q); !known {
				return false
			}
		}
		g.Has |= has
		return true
	}
	number := func(q quantity) float64 { value, _ := d.values.Get(q); return value }
	if known(sample.HasTemperature, temperature) {
		g.Temperature = number(temperature)
	}
	if known(sample.HasLink, linkWidth, linkGeneration) {
		g.LinkWidth, g.LinkGeneration = int(number(linkWidth)), int(number(linkGeneration))
	}
	if known(sample.HasLinkMax, linkWidthMax, linkGenerationMax) {
		g.LinkWidthMax, g.LinkGenerationMax = int(number(linkWidthMax)), int(number(linkGenerationMax))
	}
	if watts, known := d.got(power, r); known {
		g.Power, g.Has = watts, g.Has|sample.HasPower
	}
	joules, counted := d.got(energyCounter, r)
	if counted {
		g.Energy, g.Has = joules, g.Has|sample.HasEnergy
	}
	r.meanPower = g.Has&sample.HasPower != 0 && d.averagesPower()
	r.energySpared = r.requested&(1<<energyCounter) == 0 && d.sparesEnergy
	d.sparesEnergy = r.meanPower && (r.energySpared || counted)
}

// averagesPower reports whether power is a mean of about a second (nvml.h).
func (d *deviceReader) averagesPower() bool {
	_, known := d.values.Get(meanPower)
	return known
}

// got returns a quantity if it was read in this reading.
func (d *deviceReader) got(q quantity, r *reading) (value float64, known bool) {
	if r.got&(1<<q) == 0 {
		return 0, false
	}
	return d.values.Get(q)
}

// readRows reads those rows of a function that are due, in one call.
func (d *deviceReader) readRows(s span, w request, r *reading) {
	d.list = d.list[:0]
	for i := s.from; i < s.to; i++ {
		switch p := &rows[i]; {
		case d.unsupported[i] || d.isSpared(p, i):
		case d.isDue(p, i, w, r):
			r.requested |= 1 << p.quantity
			d.list = append(d.list, answer{row: i})
		case p.traits&byReason != 0: // its growth since the turn before comes second by second
			d.values.Set(p.quantity, d.paced(p.quantity, d.counters[p.quantity].value, r))
		}
	}
	if len(d.list) == 0 {
		return
	}
	list := d.list
	if s == gpmRows && (d.sampled == 0 || r.clocks.at.Mono-d.sampled > maxGPMInterval) {
		list = nil // the first of two samples: there is no mean yet
	}
	ok := d.do(s, r, func() error { return d.device.read(rows[s.from].call, list) })
	for k := range d.list {
		v, p := &d.list[k], &rows[d.list[k].row]
		if ok && list != nil && p.quantity != nothing {
			d.take(v, k > 0 && d.list[k-1].err == nil, r)
		}
		if source := d.sourceOf(p.quantity); r.got&(1<<p.quantity) == 0 && (source < 0 || source == v.row) {
			d.drop(p.quantity)
		}
	}
	if s == gpmRows {
		d.sampled = 0
		if ok {
			d.sampled = r.clocks.at.Mono
		}
	}
}

// sourceOf returns the row that provides a quantity; -1 for none yet.
func (d *deviceReader) sourceOf(q quantity) int {
	if q == nothing {
		return -1
	}
	return d.source[q] - 1
}

// isSpared reports whether another row provides the quantity of a row.
func (d *deviceReader) isSpared(p *row, i int) bool {
	if counter, ok := counterOf[p.quantity]; ok && d.source[counter] != 0 {
		return !d.wraps[counter].mayWrap()
	}
	source := d.sourceOf(p.quantity)
	return source >= 0 && source != i && p.traits&together == 0
}

// isDue reports whether a row is read now. In the first reading all are.
func (d *deviceReader) isDue(p *row, i int, w request, r *reading) bool {
	has := func(q quantity) bool { return r.got&(1<<q) != 0 }
	hasTurn := (d.rotation+turns[i])%rotations == 0
	switch {
	case p.call == callGPM: // nvml.h requires some time between two samples
		return d.sampled == 0 || r.clocks.at.Mono-d.sampled >= minGPMInterval
	case p.quantity == energyCounter: // milliseconds of the driver's time, which the mean of power spares
		return !has(energyCounter) && (!d.sparesEnergy || hasTurn)
	case p.quantity == power:
		return w.power || d.averagesPower() || !has(energyCounter)
	case p.quantity == throttleReasons:
		return !has(throttleReasons) && (!d.initialized || d.needsReasons())
	case !d.initialized:
		return true
	case p.traits&byReason != 0:
		_, known := d.values.Get(p.quantity)
		return hasTurn || !known || d.source[p.quantity] == 0 || (d.reasons|d.reasonsBefore)&reasonBits[p.quantity] != 0
	case p.period == slow:
		return hasTurn
	}
	return p.period == second
}

// take takes over one number. before is whether the number before it in the list was taken over.
func (d *deviceReader) take(v *answer, before bool, r *reading) {
	p := &rows[v.row]
	q := p.quantity
	switch {
	case v.err != nil:
		d.judge(v.row, v.err, false, r)
		return
	case p.traits&together != 0 && !before:
		v.err = errImpossible
		return
	case d.isSpared(p, v.row): // by a row before it in the same call
		return
	}
	d.succeeded[v.row], r.answered = true, true
	number, wide := v.number, d.wraps[q]
	if p.traits&wraps != 0 && number >= 0 {
		number = wide.add(number, v.narrow, d.gpmGrowth(q, r))
	}
	number *= p.unit.factor
	if !d.isPossible(p, number, r) {
		v.err = errImpossible
		return
	}
	switch {
	case p.traits&byRate != 0:
		d.sums[q] += number * (r.clocks.at.Mono - d.sampled).Seconds()
		number = d.sums[q]
	case p.traits&byReason != 0:
		number = d.paced(q, number, r)
	case p.unit == gpmPercent:
		number = min(number, 1)
	}
	d.source[q], d.wraps[q] = v.row+1, wide // a value that cannot be is no wrap
	d.values.Set(q, number)
	r.got |= 1 << q
}

var errImpossible = errors.New("a value that cannot be")

// isPossible is the one place where a value that cannot be is found. It is counted, and then dropped.
func (d *deviceReader) isPossible(p *row, number float64, r *reading) bool {
	return r.valid(nameOf(p.quantity), p.unit.contains(number) &&
		(p.unit.maxGrowth == 0 || d.counters[p.quantity].accept(number, r.clocks.at.Mono, p.unit.maxGrowth)))
}

// valid counts a value as garbage unless ok is set, which it returns.
func (r *reading) valid(what string, ok bool) bool {
	if !ok {
		r.garbage = add(r.garbage, what, 1)
	}
	return ok
}

func (d *deviceReader) drop(q quantity) {
	if q < nothing {
		d.values.Drop(q)
	}
}

// do makes one call for rows, unless the device supports none of them or was found to be lost. It returns false without
// an answer.
func (d *deviceReader) do(s span, r *reading, call func() error) bool {
	if r.failed != nil || s.to == s.from+1 && d.unsupported[s.from] {
		return false
	}
	d.current.Store(int32(s.from))
	err := call()
	if err == nil {
		if rows[s.from].quantity == nothing { // else each number has an error of its own
			d.succeeded[s.from], r.answered = true, true
		}
		return true
	}
	for i := s.from; i < s.to; i++ {
		d.judge(i, err, true, r)
	}
	return false
}

// judge is the one rule for errors, of a whole call or of one of its values: what was asked is not supported, its
// device or the session is lost, or it failed.
func (d *deviceReader) judge(i int, err error, whole bool, r *reading) {
	p := &rows[i]
	what := d.maker.nameOf(i)
	if p.name != "" && !whole {
		what = p.name
	}
	refused := p.traits&basic == 0 && errors.Is(err, codeNoPermission) // on some GPUs only root can read details
	switch {
	case r.failed != nil:
	case isLost(err), isSessionEnded(err), whole && d.isRemovedMIG(i, err):
		r.failed = err
	case refused, errors.Is(err, codeNotSupported), errors.Is(err, codeFunctionNotFound),
		p.traits&basic == 0 && errors.Is(err, codeInvalidArgument):
		d.lose(i)
		d.lacking = d.lacking || errors.Is(err, codeFunctionNotFound)
		if refused { // reported once
			r.report(fmt.Errorf("GPU %s: %s: %w", d.id, what, err))
		}
	case !whole && errors.Is(err, codeNotFound): // no data at the moment
	default:
		r.report(fmt.Errorf("GPU %s: %s: %w", d.id, what, err))
	}
}

// report adds a problem, once for all rows of a call.
func (r *reading) report(problem error) {
	if n := len(r.problems); n == 0 || r.problems[n-1].Error() != problem.Error() {
		r.problems = append(r.problems, problem)
	}
}

// isRemovedMIG reports whether an error means that a MIG device was destroyed: a call that succeeded before is unknown
// now. NVML does not document which error that is.
func (d *deviceReader) isRemovedMIG(i int, err error) bool {
	return d.succeeded[i] && d.parent != "" && (errors.Is(err, codeNotFound) || errors.Is(err, codeInvalidArgument))
}

// isUnsupported reports whether an error means that what was asked need not be asked again.
func isUnsupported(err error) bool {
	return errors.Is(err, codeNotSupported) || errors.Is(err, codeFunctionNotFound) || errors.Is(err, codeInvalidArgument)
}

// isLost reports whether an error means that one GPU is lost.
func isLost(err error) bool {
	return errors.Is(err, codeLost) || errors.Is(err, codeResetRequired)
}

// isSessionEnded reports whether an error means that the session with the driver has ended.
func isSessionEnded(err error) bool {
	return errors.Is(err, codeUninitialized) || errors.Is(err, codeDriverNotLoaded)
}
