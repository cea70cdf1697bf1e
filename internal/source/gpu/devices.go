package gpu

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// updateDevices updates the states from the driver's list of devices.
func (r *run) updateDevices(devices []device, count int, err error, now time.Duration) {
	r.listed = count
	if err != nil {
		r.reports.add("list", fmt.Errorf("listing the GPUs: %w", err), now)
	}
	for _, d := range devices {
		r.addDevice(d, now)
	}
	missing := false
	defer func() { r.memory.keep(r.devices) }()
	r.devices = slices.DeleteFunc(r.devices, func(g *deviceState) bool { return isRepartitioned(g, devices) })
	for _, g := range r.devices {
		listed := slices.ContainsFunc(devices, func(d device) bool { return d.id() == g.info.ID })
		if !listed && g.readable() {
			r.markLost(g, codeLost)
		}
		missing = missing || !listed
	}
	if missing {
		r.relist.failed(now)
	}
	if err == nil {
		r.updateMIG(devices)
	}
}

// updateMIG resets the reader of a GPU after its MIG mode changed, because the supported queries differ.
func (r *run) updateMIG(devices []device) {
	for _, g := range r.devices {
		partitioned := slices.ContainsFunc(devices, func(d device) bool { return d.parent() == g.info.ID })
		if g.readable() && partitioned != g.partitioned {
			g.partitioned, g.device = partitioned, g.device.reset()
			g.info.Has &^= sample.LacksBusy
		}
	}
}

// removeMIG drops the state of a MIG device that was destroyed. The next round lists the devices again.
func (r *run) removeMIG(g *deviceState) {
	r.devices = slices.DeleteFunc(r.devices, func(other *deviceState) bool { return other == g })
	r.listed = -1
}

// isRepartitioned reports whether a MIG device is gone while its GPU is listed: it was destroyed, not lost.
func isRepartitioned(g *deviceState, devices []device) bool {
	if g.info.Parent == "" {
		return false
	}
	parentGPU := false
	for _, d := range devices {
		if d.id() == g.info.ID {
			return false
		}
		parentGPU = parentGPU || d.id() == g.info.Parent
	}
	return parentGPU
}

// addDevice adds the state of a new device, or updates that of a device that has returned.
func (r *run) addDevice(d device, now time.Duration) {
	i := slices.IndexFunc(r.devices, func(g *deviceState) bool { return g.info.ID == d.id() })
	if i < 0 {
		if len(r.devices) >= maxDevices && !r.evictLost() {
			return
		}
		r.devices = append(r.devices, &deviceState{})
		i = len(r.devices) - 1
	} else if r.devices[i].device != nil {
		return
	}
	g := r.devices[i]
	g.device, g.status, g.due, g.appeared = newDeviceReader(d), sample.GPUWorks, now, now
	g.info = sample.GPU{ID: d.id(), Name: d.name(), Index: d.index(), Driver: r.version, Parent: d.parent()}
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
	if processes {
		r.grid.processes, r.grid.processesRead = r.grid.processes[:0], false
	}
	var due []*deviceState
	for _, g := range r.devices {
		if g.readable() && (all || processes || g.due <= r.began) {
			due = append(due, g)
		}
	}
	r.readEach(ctx, due, func(g *deviceState) request { return r.request(g, processes) })
	if processes {
		r.grid.processesRead, r.processesRead = true, r.began
		for _, g := range r.devices {
			g.memoryListed = g.gauges.MemoryUsed
			g.unused = r.isUnused(g)
		}
		r.scheduleProcesses()
	}
	r.readXIDs(ctx)
	r.addDriverUse()
}

// readEach reads devices.
func (r *run) readEach(ctx context.Context, due []*deviceState, what func(*deviceState) request) {
	for len(due) > 0 && ctx.Err() == nil && r.open {
		due = due[r.read(ctx, due, what):]
	}
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

// isUnused reports whether no process was listed that holds memory of a GPU.
func (r *run) isUnused(g *deviceState) bool {
	return !slices.ContainsFunc(r.grid.processes, func(p sample.GPUProcess) bool { return p.GPU == g.info.ID })
}

// turn is the reading of several devices, one after another on one thread: to give a thread each of them apart would
// cost two switches of threads each.
type turn struct {
	devices  []*deviceState
	readers  []*deviceReader
	requests []request
	readings []*reading // of those that are complete
	begun    atomic.Int64
	since    atomic.Int64 // Stamp.Mono at which the newest began
	complete atomic.Int64
}

// turnOver is begun when no further device may be read: more than there are.
const turnOver = maxDevices + 1

// run reads the devices. It ends early once the turn is over.
func (t *turn) run(ctx context.Context, driver driver) {
	for i, device := range t.readers {
		t.since.Store(int64(sample.Now().Mono))
		if ctx.Err() != nil || !t.begun.CompareAndSwap(int64(i), int64(i)+1) {
			return
		}
		t.readings[i] = device.read(driver, t.requests[i])
		t.complete.Store(int64(i) + 1)
	}
}

// left is how much longer the reading that is under way may take.
func (t *turn) left() time.Duration {
	return time.Duration(t.since.Load()) + callTimeout - sample.Now().Mono
}

// read reads the first of these devices, and returns how many that were.
func (r *run) read(ctx context.Context, due []*deviceState, what func(*deviceState) request) (done int) {
	t := &turn{devices: due, readings: make([]*reading, len(due))}
	t.since.Store(int64(sample.Now().Mono))
	for _, g := range due {
		t.readers, t.requests = append(t.readers, g.device), append(t.requests, what(g))
	}
	var hung *deviceState
	outcome := r.doEach(ctx, t.left, func() { t.run(ctx, r.driver) }, func() {
		if hung != nil && hung.status == sample.GPUHung {
			hung.status, hung.due = sample.GPUWorks, r.began
		}
	})
	if outcome == noThread {
		for _, g := range due {
			g.markHung()
			r.emitXIDs(g)
			g.noThread = true
		}
		return len(due)
	}
	begun := int(t.begun.Swap(turnOver))
	complete := int(t.complete.Load())
	for i, g := range due[:complete] {
		if r.open {
			r.apply(g, t.readings[i])
		}
	}
	if outcome == completed || ctx.Err() != nil { // the timeout was cut short
		return len(due)
	}
	if complete == begun {
		return begun
	}
	hung = due[begun-1]
	hung.markHung()
	r.emitXIDs(hung)
	call := query(t.readers[begun-1].current.Load())
	r.reports.add("hung "+hung.info.ID, fmt.Errorf("GPU %s hangs: the driver has not responded to %s for %v; "+
		"the GPU is read again once that call has returned", hung.info.ID, call, callTimeout), r.began)
	return begun
}

// request returns what to read of a device.
func (r *run) request(g *deviceState, processes bool) request {
	w := request{since: g.since, processes: processes, wantRate: !g.isNew(r.began),
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
	now := sample.Now().Mono
	if isSessionEnded(got.failed) {
		r.endSession(got.failed)
		return
	}
	if got.failed != nil && !isLost(got.failed) {
		r.removeMIG(g)
		return
	}
	if got.failed != nil {
		r.markLost(g, got.failed)
		r.relist.failed(now)
		return
	}
	if !slices.ContainsFunc(r.devices, func(g *deviceState) bool { return g.status == sample.GPULost }) {
		r.relist.succeeded()
	}
	r.applyMemory(g, got)
	garbage := 0
	if !got.onlyMemory {
		garbage = g.apply(got, r.grid.at.Mono)
	}
	if g.memoryJumped() { // a program has come or gone
		again := r.processesRead + againProcesses
		if g.unused { // it may load a model now; its memory is read once a second
			again = r.began
		}
		r.processes.next = min(r.processes.next, again)
	}
	if garbage > 0 {
		got.garbage = add(got.garbage, "utilization", garbage)
	}
	for what, n := range got.garbage {
		r.countGarbage(what, n)
	}
	if got.hasDetails {
		r.grid.addDetail(sample.GPUDetail{GPU: g.info.ID, At: got.clocks.at.Mono, Values: got.detail, XIDs: g.xids})
	}
	for _, err := range got.problems {
		r.reports.add(err.Error(), err, now)
	}
	for _, p := range got.processes {
		p.GPU = g.info.ID
		r.grid.processes = append(r.grid.processes, p)
	}
	if got.onlyMemory {
		return
	}
	g.due = r.began + readInterval
	switch {
	case g.pollsRate:
		g.due = r.began + 2*r.interval
	case g.isNew(now):
		g.due = r.began + holdInterval
	}
}

// countGarbage counts values outside their physical range.
func (r *run) countGarbage(what string, n int) {
	r.grid.garbage = add(r.grid.garbage, what, n)
	r.dropped += uint64(n)
}

func add(counts map[string]int, what string, n int) map[string]int {
	if counts == nil {
		counts = map[string]int{}
	}
	counts[what] += n
	return counts
}

func (r *run) markLost(g *deviceState, err error) {
	g.markLost()
	r.emitXIDs(g)
	if g.info.Parent != "" {
		return // it may have been destroyed; the loss of its GPU is reported
	}
	r.reports.add("lost "+g.info.ID, fmt.Errorf("GPU %s (%s): %w", g.info.ID, g.info.Name, err), r.began)
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
