package gpu

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// learnDevices takes over which GPUs there are.
func (r *run) learnDevices(devices []device, count int, err error, now time.Duration) {
	r.listed = count
	if err != nil {
		r.notes.add("list", fmt.Errorf("listing the GPUs: %w", err), now)
	}
	for _, d := range devices {
		r.learnDevice(d, now)
	}
	missing := false
	r.cards = slices.DeleteFunc(r.cards, func(c *card) bool { return isCutAnew(c, devices) })
	for _, c := range r.cards {
		listed := slices.ContainsFunc(devices, func(d device) bool { return d.id() == c.facts.ID })
		if !listed && c.works() {
			r.lose(c, codeLost)
		}
		missing = missing || !listed
	}
	if missing {
		r.relist.failed(now)
	}
	if err == nil {
		r.learnCuts(devices)
	}
}

// learnCuts asks a GPU anew for everything after it was cut into slices or made whole again, which changes what it tells.
func (r *run) learnCuts(devices []device) {
	for _, c := range r.cards {
		cut := slices.ContainsFunc(devices, func(d device) bool { return d.parent() == c.facts.ID })
		if c.works() && cut != c.cut {
			c.cut, c.device = cut, c.device.anew()
			c.facts.Has &^= sample.LacksBusy
		}
	}
}

// takeAway forgets a slice that is no more, while its GPU is. The next list finds out what there is now.
func (r *run) takeAway(c *card) {
	r.cards = slices.DeleteFunc(r.cards, func(other *card) bool { return other == c })
	r.listed = -1
}

// isCutAnew says that a MIG slice is gone while its GPU is there: somebody took it away, and it is not lost.
func isCutAnew(c *card, devices []device) bool {
	if c.facts.Parent == "" {
		return false
	}
	whole := false
	for _, d := range devices {
		if d.id() == c.facts.ID {
			return false
		}
		whole = whole || d.id() == c.facts.Parent
	}
	return whole
}

// learnDevice takes over a GPU that is new, or has returned.
func (r *run) learnDevice(d device, now time.Duration) {
	i := slices.IndexFunc(r.cards, func(c *card) bool { return c.facts.ID == d.id() })
	if i < 0 {
		if len(r.cards) >= mostCards && !r.forget() {
			return
		}
		r.cards = append(r.cards, &card{})
		i = len(r.cards) - 1
	} else if r.cards[i].device != nil {
		return
	}
	c := r.cards[i]
	c.device, c.status, c.due = newAsked(d), sample.GPUWorks, now
	c.facts = sample.GPU{ID: d.id(), Name: d.name(), Index: d.index(), Driver: r.version, Parent: d.parent()}
	c.unsettle()
	c.domain, c.since, c.polled = unknownClock, 0, false
}

// forget makes room by dropping a GPU that is lost: MIG slices get a new id each time they are made.
func (r *run) forget() bool {
	i := slices.IndexFunc(r.cards, func(c *card) bool { return c.status == sample.GPULost })
	if i >= 0 {
		r.cards = slices.Delete(r.cards, i, i+1)
	}
	return i >= 0
}

// readAll reads the GPUs that are due.
func (r *run) readAll(ctx context.Context, all, processes bool) {
	if processes {
		r.processes = r.began + processesEach
		r.rows.processes, r.rows.processesRead = r.rows.processes[:0], false
	}
	for _, c := range slices.Clone(r.cards) {
		if c.works() && (all || processes || c.due <= r.began) && ctx.Err() == nil && r.open {
			r.read(ctx, c, processes)
		}
	}
	r.rows.processesRead = r.rows.processesRead || processes
	r.readEvents(ctx)
	r.learnUse()
}

// read asks one GPU.
func (r *run) read(ctx context.Context, c *card, processes bool) {
	w := wants{since: c.since, processes: processes, noBuffer: true, gauges: c.gaugeAt == 0 || r.began-c.gaugeAt >= gaugesEach,
		anew: c.gaugeAt == 0, power: c.gauges.Has&sample.HasEnergy == 0}
	if c.newest != 0 {
		silent := r.began - c.newest
		w.noBuffer = c.polled || silent > dueBehind
		if silent > longestPeriod {
			w.since = 0 // its clock may have been set back
		}
	}
	device := c.device
	var got *reading
	switch r.do(ctx, callLimit, func() { got = device.read(r.driver, w) }, func() {
		if c.status == sample.GPUHung {
			c.status, c.due = sample.GPUWorks, r.began
		}
	}) {
	case finished:
		r.learn(c, got)
	case abandoned:
		if ctx.Err() != nil {
			return // nothing was found out
		}
		c.hang()
		r.tellXIDs(c)
		call := question(device.now.Load())
		r.notes.add("hung "+c.facts.ID, fmt.Errorf("GPU %s hangs: the driver has not answered %s for %v; it is asked again once "+
			"that call has returned", c.facts.ID, call, callLimit), r.began)
	case refused:
		c.hang()
		r.tellXIDs(c)
		c.waits = true
	}
}

// learn takes over a reading and plans the next.
func (r *run) learn(c *card, got *reading) {
	now := sample.Now().Mono
	if isEnded(got.failed) {
		r.ended(got.failed)
		return
	}
	if got.failed != nil && !isGone(got.failed) {
		r.takeAway(c)
		return
	}
	if got.failed != nil {
		r.lose(c, got.failed)
		r.relist.failed(now)
		return
	}
	if !slices.ContainsFunc(r.cards, func(c *card) bool { return c.status == sample.GPULost }) {
		r.relist.worked()
	}
	garbage := c.learn(got, r.rows.at.Mono)
	if garbage > 0 {
		got.garbage = add(got.garbage, "utilization", garbage)
	}
	for what, n := range got.garbage {
		r.drop(what, n)
	}
	if got.asked {
		r.rows.detail(sample.GPUDetail{GPU: c.facts.ID, At: got.clocks.at.Mono, Values: got.detail, XIDs: c.xids})
	}
	for _, err := range got.problems {
		r.notes.add(err.Error(), err, now)
	}
	for _, p := range got.procs {
		p.GPU = c.facts.ID
		r.rows.processes = append(r.rows.processes, p)
	}
	c.due = r.began + usually
	switch {
	case c.polled:
		c.due = r.began + 2*r.interval
	case c.newest > now-dueBehind:
		c.due = max(min(c.due, c.newest+dueBehind), r.began+soonestDue)
	}
}

// drop counts values that cannot be.
func (r *run) drop(what string, n int) {
	r.rows.dropped = add(r.rows.dropped, what, n)
	r.dropped += uint64(n)
}

func add(counts map[string]int, what string, n int) map[string]int {
	if counts == nil {
		counts = map[string]int{}
	}
	counts[what] += n
	return counts
}

func (r *run) lose(c *card, err error) {
	c.lose()
	r.tellXIDs(c)
	if c.facts.Parent != "" {
		return // it may have been taken away; its GPU is told when that is lost
	}
	r.notes.add("lost "+c.facts.ID, fmt.Errorf("GPU %s (%s): %w", c.facts.ID, c.facts.Name, err), r.began)
}

// reached is the newest moment that the utilisation of every working GPU reaches, those left out that have told nothing
// for so long that nobody waits for them.
func (r *run) reached(now time.Duration) time.Duration {
	reached := now
	for _, c := range r.cards {
		if c.works() && c.newest > now-dueBehind {
			reached = min(reached, c.newest)
		}
	}
	return max(reached, now-mostBehind)
}
