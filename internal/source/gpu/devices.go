package gpu

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// slot is what the driver has at one index: a GPU and its MIG devices.
type slot struct {
	call    *call
	devices []device
	err     error
}

// listSlots lists the devices of each index with a call of its own, so that a GPU that hangs does not hide the others.
func (r *run) listSlots(count int) {
	count = min(count, maxDevices)
	for len(r.slots) < count {
		r.slots = append(r.slots, slot{})
	}
	r.slots = r.slots[:count]
	for i := range r.slots {
		if r.open && !r.slots[i].call.isUnderWay() {
			r.listSlot(i)
		}
	}
	r.endList()
}

func (r *run) listSlot(i int) {
	var list []device
	var err error
	session := r.session
	r.slots[i].call = r.begin(callTimeout, func() { list, err = r.driver.list(i) }, func(late bool) {
		if !r.open || r.session != session || i >= len(r.slots) {
			return
		}
		if isSessionEnded(err) {
			r.endSession(err)
			return
		}
		r.slots[i].devices, r.slots[i].err = list, err
		r.updateSlot(r.slots[i])
		if late {
			r.endList()
		}
	}, func() {
		r.report(fmt.Errorf("%s has not responded for %v to which GPU number %d is: the other GPUs are read "+
			"meanwhile; look for %s in the kernel log", r.maker.driver, callTimeout, i, r.maker.trace))
	})
}

// updateSlot updates the states from the list of a GPU and its MIG devices.
func (r *run) updateSlot(s slot) {
	for i, d := range s.devices {
		if i == 0 {
			r.replace(d.about())
		}
		r.addDevice(d, sample.Now().Mono)
	}
	r.devices = slices.DeleteFunc(r.devices, func(g *deviceState) bool { return isRepartitioned(g, s.devices) })
	for _, g := range r.devices {
		partitioned := len(s.devices) > 1
		if s.err == nil && g.readable() && isListed(g, s.devices[:1]) && partitioned != g.device.partitioned {
			g.device = g.device.reset() // the supported queries differ
			g.device.partitioned = partitioned
			g.info.Has &^= sample.LacksBusy
		}
	}
}

// endList judges, once each index was answered, the devices that are not listed and do not answer.
func (r *run) endList() {
	var problems sample.Problems
	for i, s := range r.slots {
		if s.call.isUnderWay() || !r.open {
			return
		}
		r.addOf(i, s.err, &problems)
	}
	r.memory.keep(r.runs)
	if len(r.devices) == 0 {
		r.endSession(cmp.Or(problems.Err(), errNoGPU))
		return
	}
	r.retry.succeeded()
	if err := problems.Err(); err != nil {
		r.reports.Add("list", fmt.Errorf("listing the GPUs: %w", err), r.began)
	}
	for _, err := range r.twins() {
		r.reports.Add(err.Error(), err, r.began)
	}
	isHere := func(g *deviceState) bool {
		return slices.ContainsFunc(r.slots, func(s slot) bool { return isListed(g, s.devices) })
	}
	for _, g := range r.devices {
		if g.status != sample.GPUUnknown || isHere(g) {
			continue
		}
		if i := g.info.Index; i < len(r.slots) && isLost(r.slots[i].err) {
			r.markLost(g, r.slots[i].err)
		} else if problems.Err() == nil {
			r.markLost(g, r.maker.lost)
		}
	}
}

// addOf adds the error, if any, of the GPU at an index.
func (r *run) addOf(index int, err error, to *sample.Problems) {
	if err != nil {
		to.Add(fmt.Errorf("%s: %w", sample.GPUName(r.maker.vendor, index), err))
	}
}

// twins returns an error for each GPU that has the UUID of another one.
func (r *run) twins() (list []error) {
	seen := map[string]bool{}
	for _, s := range r.slots {
		for _, d := range s.devices {
			if seen[d.about().id] {
				list = append(list, fmt.Errorf("%s lists %s twice, and only the first is read: compare %s", r.maker.driver,
					d.about().id, r.maker.listedBy))
			}
			seen[d.about().id] = true
		}
	}
	return list
}

// isListed reports whether a device is among those of a list.
func isListed(g *deviceState, devices []device) bool {
	return slices.ContainsFunc(devices, func(d device) bool { return d.about().id == g.info.ID })
}

// removeMIG drops the state of a MIG device that was destroyed. The next round lists the devices again.
func (r *run) removeMIG(g *deviceState) {
	r.devices = slices.DeleteFunc(r.devices, func(other *deviceState) bool { return other == g })
	r.processes.next = r.began
}

// isRepartitioned reports whether a MIG device is gone while its GPU is listed: it was destroyed, not lost.
func isRepartitioned(g *deviceState, devices []device) bool {
	return g.info.Parent != "" && !isListed(g, devices) &&
		slices.ContainsFunc(devices, func(d device) bool { return d.about().id == g.info.Parent })
}

// stateOf returns the state of the device with an ID, or nil.
func (r *run) stateOf(id string) *deviceState {
	for _, g := range r.devices {
		if g.info.ID == id {
			return g
		}
	}
	return nil
}

// replace marks the GPU as lost whose number a GPU has that was not known: its handle, which may still answer, has
// another UUID now.
func (r *run) replace(by *identity) {
	if r.stateOf(by.id) != nil {
		return
	}
	for _, g := range r.devices {
		if g.readable() && g.info.Parent == "" && g.info.Index == by.index {
			r.markLost(g, fmt.Errorf("its number has another UUID now, %s", by.id))
		}
	}
}

// addDevice adds the state of a new device, or updates that of a device that has returned.
func (r *run) addDevice(d device, now time.Duration) {
	about := d.about()
	g := r.stateOf(about.id)
	switch {
	case g == nil:
		if len(r.devices) >= maxDevices && !r.evictLost() {
			return
		}
		if !r.hasDevices() && r.why != nil {
			r.At = sample.Now() // there is no data of the time before
		}
		r.why = nil
		g = &deviceState{}
		r.devices = append(r.devices, g)
	case g.device != nil:
		return
	}
	g.device, g.due, g.appeared = newDeviceReader(d), now, now
	g.device.machine = r.machine
	if g.status != sample.GPUHung {
		g.status = sample.GPUWorks
	}
	g.info = sample.GPU{ID: about.id, Name: about.name, Index: about.index, Driver: r.version, Parent: about.parent,
		Vendor: r.maker.vendor}
	if s, ok := d.(sleepsAlone); ok && g.rest == nil {
		g.rest = s.sleeps()
	}
	g.unanchor()
	g.domain, g.since, g.pollsRate = unknownClock, 0, false
}

// evictLost makes room by dropping a lost device: MIG devices get a new UUID each time they are created.
func (r *run) evictLost() bool {
	i := slices.IndexFunc(r.devices, func(g *deviceState) bool { return g.status == sample.GPULost })
	if i >= 0 {
		r.devices = slices.Delete(r.devices, i, i+1)
	}
	return i >= 0
}

// readDevices reads the devices that are due.
func (r *run) readDevices(ctx context.Context, all, processes bool) {
	var due []*deviceState
	for _, g := range r.devices {
		if (all || processes || g.due <= r.began) && !r.rests(g) {
			due = append(due, g)
		}
	}
	r.readEach(ctx, due, func(g *deviceState) request { return r.request(g, processes) })
	if processes {
		r.processesRead = r.began
		r.listUsers()
		r.scheduleProcesses()
	}
	r.readXIDs(ctx)
	r.addDriverUse()
}

// scheduleProcesses sets the time of the next list of processes. A GPU without one may be waiting for a program that is
// starting.
func (r *run) scheduleProcesses() {
	if slices.ContainsFunc(r.devices, func(g *deviceState) bool { return g.readable() && g.unused }) {
		r.processes.failed(r.began)
		return
	}
	r.processes.succeeded()
	r.processes.next = r.began + processInterval
}

// readEach reads devices, one after another unless one is slow: a driver serves one at a time.
func (r *run) readEach(ctx context.Context, due []*deviceState, what func(*deviceState) request) {
	for _, g := range due {
		if ctx.Err() == nil && r.open && g.device != nil && !g.call.isUnderWay() {
			r.read(g, what(g))
		}
	}
}

// read reads a device. Without room for another call nothing is known of it.
func (r *run) read(g *deviceState, what request) {
	var got *reading
	reader := g.device
	g.call = r.begin(callTimeout, func() { got = reader.read(r.driver, what) }, func(late bool) {
		switch {
		case late: // what it returned is old
			g.due = r.began
			r.markUnknown(g)
			if reader.hungAgain(g.hungAt) {
				r.reports.Add("spared "+g.info.ID, fmt.Errorf("GPU %s: %s hung twice, and is not called again in this session "+
					"with the driver", g.info.ID, r.maker.nameOf(g.hungAt)), r.began)
			}
		case r.open && g.device == reader:
			r.apply(g, got)
		}
	}, func() {
		g.hungAt = int(reader.current.Load())
		r.markHung(g, r.maker.nameOf(g.hungAt))
	})
	if g.call == nil {
		g.due = r.began + readInterval
		r.markUnknown(g)
	}
}

// request returns what to read of a device.
func (r *run) request(g *deviceState, processes bool) request {
	w := request{since: g.since, newest: g.since, processes: processes && r.maker == nvidia, wantRate: !g.isNew(r.began),
		gauges: g.gaugeAt == 0 || r.began-g.gaugeAt >= gaugeInterval,
		reset:  g.gaugeAt == 0, power: g.gauges.Has&sample.HasEnergy == 0}
	if g.newest != 0 {
		silent := r.began - g.newest
		w.wantRate = g.pollsRate || silent > g.late.lag()
		if w.wantRate && silent > maxPeriod {
			w.since = 0 // the driver's clock may have been set back
		}
	}
	return w
}

// apply updates a device from a reading and sets the time of its next reading.
func (r *run) apply(g *deviceState, got *reading) {
	switch {
	case isSessionEnded(got.failed):
		r.endSession(got.failed)
		return
	case isLost(got.failed):
		r.markLost(g, got.failed)
		r.relist.failed(r.began)
		return
	case got.failed != nil:
		r.removeMIG(g)
		return
	}
	silent := !got.onlyMemory && !got.answered && len(got.problems) > 0
	for i, err := range got.problems {
		if i == 0 || !silent { // the other queries of a GPU that answers none say the same
			r.reports.Add(err.Error(), err, r.began)
		}
	}
	if !got.onlyMemory {
		g.due, g.status = r.began+readInterval, sample.GPUWorks
	}
	if silent {
		r.markUnknown(g)
		return
	}
	if !slices.ContainsFunc(r.devices, func(g *deviceState) bool { return g.status == sample.GPULost }) {
		r.relist.succeeded()
	}
	r.applyMemory(g, got)
	if !got.onlyMemory {
		r.applyReading(g, got)
	}
	for what, n := range got.garbage {
		r.countGarbage(what, n)
	}
}

// applyReading takes over all of a reading but what means that the device cannot be read.
func (r *run) applyReading(g *deviceState, got *reading) {
	if garbage := g.apply(got, r.At.Mono); garbage > 0 {
		got.garbage = add(got.garbage, "utilization", garbage)
	}
	if got.hasDetails {
		r.addDetail(sample.GPUDetail{GPU: g.info.ID, At: got.clocks.at.Mono, Values: got.detail, XIDs: g.xids})
	}
	if got.processesRead {
		r.applyProcesses(g, got.processes)
		g.unused = g.unused && !got.lacksProcesses
	}
	if g.memoryJumped() { // a program has come or gone
		again := r.processesRead + againProcesses
		if g.unused { // it may load a model now; its memory is read once a second
			again = r.began
		}
		r.processes.next = min(r.processes.next, again)
	}
	switch {
	case g.pollsRate:
		g.due = r.began + 2*r.Interval
	case g.isNew(sample.Now().Mono):
		g.due = r.began + holdInterval
	}
}

// countGarbage counts values outside their physical range.
func (r *run) countGarbage(what string, n int) {
	r.garbage = add(r.garbage, what, n)
	r.dropped += uint64(n)
}

func add(counts map[string]int, what string, n int) map[string]int {
	if counts == nil {
		counts = map[string]int{}
	}
	counts[what] += n
	return counts
}

// markLost sets the status of a device whose driver reports it as lost.
func (r *run) markLost(g *deviceState, err error) {
	g.device = nil
	r.markUnread(g, sample.GPULost)
	if g.info.Parent != "" {
		return // it may have been destroyed; the loss of its GPU is reported
	}
	r.reports.Add("lost "+g.info.ID, fmt.Errorf("GPU %s (%s): %w", g.info.ID, g.info.Name, err), r.began)
}

// markHung sets the status of a device whose own call does not return.
func (r *run) markHung(g *deviceState, call string) {
	r.markUnread(g, sample.GPUHung)
	r.reports.Add("hung "+g.info.ID, fmt.Errorf("GPU %s hangs: the driver has not responded to %s for %v; "+
		"it is read again once that call has returned; look for %s in the kernel log",
		g.info.ID, call, callTimeout, r.maker.trace), r.began)
}

// markUnknown sets the status of a device that gave no answer about itself. One that is known as lost or hung still is,
// until it answers or its call returns.
func (r *run) markUnknown(g *deviceState) {
	if g.status == sample.GPULost || g.isHung() {
		return
	}
	r.markUnread(g, sample.GPUUnknown)
}

// markUnread sets the status of a device that cannot be read. Its processes are not known any more.
func (r *run) markUnread(g *deviceState, status sample.GPUStatus) {
	g.status, g.processes, g.unused = status, nil, false
	g.unanchor()
	r.grid.processesRead = true
	r.emitXIDs(g)
}

// completeUntil returns the time up to which the utilization of every working GPU is known. GPUs without samples for
// longer than their driver is late are left out, so that they do not hold back the others.
func (r *run) completeUntil(now time.Duration) time.Duration {
	completeUntil := now
	for _, g := range r.devices {
		switch {
		case !g.readable():
		case g.isNew(now):
			completeUntil = min(completeUntil, g.appeared)
		case g.newest > now-g.late.lag():
			completeUntil = min(completeUntil, g.newest)
		}
	}
	return max(completeUntil, now-r.lag())
}

// lag is how late the rows are at most.
func (r *run) lag() time.Duration {
	longest := minLag
	for _, g := range r.devices {
		if g.readable() {
			longest = max(longest, g.late.lag())
		}
	}
	return longest
}
