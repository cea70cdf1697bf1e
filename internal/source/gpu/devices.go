package gpu

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// learnDevices takes over which GPUs there are.
func (r *run) updateDevices(devices []device, count int, err error, now time.Duration) {
	r.listed = count
	if err != nil {
		r.notes.add("list", fmt.Errorf("listing the GPUs: %w", err), now)
	}
	for _, d := range devices {
		r.addDevice(d, now)
	}
	missing := false
	r.devices = slices.DeleteFunc(r.devices, func(c *deviceState) bool { return isRepartitioned(c, devices) })
	for _, c := range r.devices {
		listed := slices.ContainsFunc(devices, func(d device) bool { return d.id() == c.info.ID })
		if !listed && c.readable() {
			r.markLost(c, codeLost)
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

// learnCuts asks a GPU anew for everything after it was cut into slices or made whole again, which changes what it tells.
func (r *run) updateMIG(devices []device) {
	for _, c := range r.devices {
		partitioned := slices.ContainsFunc(devices, func(d device) bool { return d.parent() == c.info.ID })
		if c.readable() && partitioned != c.partitioned {
			c.partitioned, c.device = partitioned, c.device.reset()
			c.info.Has &^= sample.LacksBusy
		}
	}
}

// takeAway forgets a slice that is no more, while its GPU is. The next list finds out what there is now.
func (r *run) removeMIG(c *deviceState) {
	r.devices = slices.DeleteFunc(r.devices, func(other *deviceState) bool { return other == c })
	r.listed = -1
}

// isCutAnew says that a MIG slice is gone while its GPU is there: somebody took it away, and it is not lost.
func isRepartitioned(c *deviceState, devices []device) bool {
	if c.info.Parent == "" {
		return false
	}
	parentGPU := false
	for _, d := range devices {
		if d.id() == c.info.ID {
			return false
		}
		parentGPU = parentGPU || d.id() == c.info.Parent
	}
	return parentGPU
}

// learnDevice takes over a GPU that is new, or has returned.
func (r *run) addDevice(d device, now time.Duration) {
	i := slices.IndexFunc(r.devices, func(c *deviceState) bool { return c.info.ID == d.id() })
	if i < 0 {
		if len(r.devices) >= maxDevices && !r.evictLost() {
			return
		}
		r.devices = append(r.devices, &deviceState{})
		i = len(r.devices) - 1
	} else if r.devices[i].device != nil {
		return
	}
	c := r.devices[i]
	c.device, c.status, c.due = newDeviceReader(d), sample.GPUWorks, now
	c.info = sample.GPU{ID: d.id(), Name: d.name(), Index: d.index(), Driver: r.version, Parent: d.parent()}
	c.unanchor()
	c.domain, c.since, c.pollsRate = unknownClock, 0, false
}

// forget makes room by dropping a GPU that is lost: MIG slices get a new id each time they are made.
func (r *run) evictLost() bool {
	i := slices.IndexFunc(r.devices, func(c *deviceState) bool { return c.status == sample.GPULost })
	if i >= 0 {
		r.devices = slices.Delete(r.devices, i, i+1)
	}
	return i >= 0
}

// readAll reads the GPUs that are due.
func (r *run) readDevices(ctx context.Context, all, processes bool) {
	if processes {
		r.processes = r.began + processInterval
		r.rows.processes, r.rows.processesRead = r.rows.processes[:0], false
	}
	for _, c := range slices.Clone(r.devices) {
		if c.readable() && (all || processes || c.due <= r.began) && ctx.Err() == nil && r.open {
			r.read(ctx, c, processes)
		}
	}
	r.rows.processesRead = r.rows.processesRead || processes
	r.readXIDs(ctx)
	r.addDriverUse()
}

// read asks one GPU.
func (r *run) read(ctx context.Context, c *deviceState, processes bool) {
	w := request{since: c.since, processes: processes, wantRate: true, gauges: c.gaugeAt == 0 || r.began-c.gaugeAt >= gaugeInterval,
		reset: c.gaugeAt == 0, power: c.gauges.Has&sample.HasEnergy == 0}
	if c.newest != 0 {
		silent := r.began - c.newest
		w.wantRate = c.pollsRate || silent > readLag
		if silent > maxPeriod {
			w.since = 0 // its clock may have been set back
		}
	}
	device := c.device
	var got *reading
	switch r.do(ctx, callTimeout, func() { got = device.read(r.driver, w) }, func() {
		if c.status == sample.GPUHung {
			c.status, c.due = sample.GPUWorks, r.began
		}
	}) {
	case completed:
		r.apply(c, got)
	case timedOut:
		if ctx.Err() != nil {
			return // nothing was found out
		}
		c.markHung()
		r.emitXIDs(c)
		call := query(device.current.Load())
		r.notes.add("hung "+c.info.ID, fmt.Errorf("GPU %s hangs: the driver has not answered %s for %v; it is asked again once "+
			"that call has returned", c.info.ID, call, callTimeout), r.began)
	case noThread:
		c.markHung()
		r.emitXIDs(c)
		c.noThread = true
	}
}

// learn takes over a reading and plans the next.
func (r *run) apply(c *deviceState, got *reading) {
	now := sample.Now().Mono
	if isSessionEnded(got.failed) {
		r.endSession(got.failed)
		return
	}
	if got.failed != nil && !isLost(got.failed) {
		r.removeMIG(c)
		return
	}
	if got.failed != nil {
		r.markLost(c, got.failed)
		r.relist.failed(now)
		return
	}
	if !slices.ContainsFunc(r.devices, func(c *deviceState) bool { return c.status == sample.GPULost }) {
		r.relist.succeeded()
	}
	garbage := c.apply(got, r.rows.at.Mono)
	if garbage > 0 {
		got.garbage = add(got.garbage, "utilization", garbage)
	}
	for what, n := range got.garbage {
		r.countGarbage(what, n)
	}
	if got.hasDetails {
		r.rows.addDetail(sample.GPUDetail{GPU: c.info.ID, At: got.clocks.at.Mono, Values: got.detail, XIDs: c.xids})
	}
	for _, err := range got.problems {
		r.notes.add(err.Error(), err, now)
	}
	for _, p := range got.processes {
		p.GPU = c.info.ID
		r.rows.processes = append(r.rows.processes, p)
	}
	c.due = r.began + readInterval
	switch {
	case c.pollsRate:
		c.due = r.began + 2*r.interval
	case c.newest > now-readLag:
		c.due = max(min(c.due, c.newest+readLag), r.began+minReadInterval)
	}
}

// drop counts values that cannot be.
func (r *run) countGarbage(what string, n int) {
	r.rows.garbage = add(r.rows.garbage, what, n)
	r.dropped += uint64(n)
}

func add(counts map[string]int, what string, n int) map[string]int {
	if counts == nil {
		counts = map[string]int{}
	}
	counts[what] += n
	return counts
}

func (r *run) markLost(c *deviceState, err error) {
	c.markLost()
	r.emitXIDs(c)
	if c.info.Parent != "" {
		return // it may have been taken away; its GPU is told when that is lost
	}
	r.notes.add("lost "+c.info.ID, fmt.Errorf("GPU %s (%s): %w", c.info.ID, c.info.Name, err), r.began)
}

// reached is the newest moment that the utilisation of every working GPU reaches, those left out that have told nothing
// for so long that nobody waits for them.
func (r *run) completeUntil(now time.Duration) time.Duration {
	completeUntil := now
	for _, c := range r.devices {
		if c.readable() && c.newest > now-readLag {
			completeUntil = min(completeUntil, c.newest)
		}
	}
	return max(completeUntil, now-maxLag)
}
