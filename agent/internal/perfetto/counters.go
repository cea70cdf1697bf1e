package perfetto

import (
	"fmt"
	"time"

	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/sample"
)

const (
	maxCounters = 4096
	firstStep   = 500 * time.Millisecond // the first distance between two values above every reading
)

const percent = 100

// counters draws the devices. A rate is the mean between two readings, so it stands at the first of them: Perfetto
// draws a value until the next one.
type counters struct {
	tracks   *tracks
	budget   budget
	all      map[counterKey]*counter
	refused  int // counters without a track
	dropped  int // values without room
	disks    map[string]reading[diskBefore]
	pressure map[pressureKey]reading[sample.Pressure]
	jobs     map[string]reading[sample.Job]
	gpus     map[string]gpuBefore
	cores    map[string]reading[coresBefore] // of the machine alone
}

// reading is what was read of one thing before.
type reading[V any] struct {
	at    time.Duration
	value V
}

// swap keeps what was read of one thing, and returns what was read before. It reports false for the first reading, for
// one that comes too early, and for a thing too many.
func swap[K comparable, V any](c *counters, of map[K]reading[V], key K, at time.Duration, value V) (reading[V], bool) {
	before, known := of[key]
	if known && !c.due(before.at, at) || !known && len(of) >= maxCounters {
		return before, false
	}
	of[key] = reading[V]{at, value}
	return before, known
}

// counterKey names a counter within its group.
type counterKey struct{ group, name string }

// counter is one track, and its newest value.
type counter struct {
	id    uint64
	value float64
}

type diskBefore struct {
	first time.Duration // when it was seen, or its counters began again
	disk  sample.Disk
}

type pressureKey struct {
	scope    string
	resource sample.Resource
}

type gpuBefore struct {
	at      time.Duration
	busy    time.Duration
	works   bool
	details time.Duration // of the newest
	panel   panel
}

type coresBefore struct{ busy, iowait time.Duration }

func (c *counters) init(to *tracks) {
	*c = counters{
		tracks: to, budget: newBudget(maxValues, firstStep), all: map[counterKey]*counter{},
		disks: map[string]reading[diskBefore]{}, pressure: map[pressureKey]reading[sample.Pressure]{},
		jobs: map[string]reading[sample.Job]{}, gpus: map[string]gpuBefore{}, cores: map[string]reading[coresBefore]{},
	}
}

// panel is a group of counters, at its place among the others.
type panel struct {
	name string
	rank rank
}

// set gives a counter a value from a moment on.
func (c *counters) set(p panel, name, unit string, at time.Duration, value float64) {
	key := counterKey{p.name, name}
	known := c.all[key]
	switch {
	case known == nil && len(c.all) >= maxCounters:
		c.refused++
		return
	case known == nil:
		known = &counter{id: c.tracks.counter(c.tracks.group(p.name, p.rank), name, unit, len(c.all))}
		c.all[key] = known
	case known.value == value:
		return
	}
	if !c.budget.spend(1, at) {
		c.dropped++
		return
	}
	known.value = value
	c.tracks.out.counter(known.id, at, value)
}

// due reports whether a reading is late enough after the one before.
func (c *counters) due(before, now time.Duration) bool {
	return now > before && now-before >= c.budget.detail
}

func (c *counters) learn(s *sample.Sample) {
	at := s.At.Mono
	for i := range s.Disks {
		c.disk(at, &s.Disks[i])
	}
	for i := range s.Pressures {
		c.press(at, &s.Pressures[i])
	}
	for i := range s.Jobs {
		c.job(at, &s.Jobs[i])
	}
	for i := range s.GPUs {
		c.gpu(at, &s.GPUs[i])
	}
	for i := range s.GPUDetails {
		c.gpuDetails(&s.GPUDetails[i])
	}
	if len(s.Cores) > 0 {
		c.core(at, s.Cores)
	}
}

// disk draws a disk from its first operation on.
func (c *counters) disk(at time.Duration, d *sample.Disk) {
	if !d.Leaf && !d.Layer {
		return
	}
	before, ok := swap(c, c.disks, d.Name, at, diskBefore{at, *d})
	if !ok {
		return
	}
	delta, ok := d.Since(&before.value.disk, at-before.at)
	if !ok {
		return
	}
	first := before.value.first
	c.disks[d.Name] = reading[diskBefore]{at, diskBefore{first, *d}}
	p := panel{"Disk " + d.Name, rankDisks}
	if c.all[counterKey{p.name, "read"}] == nil {
		if delta.ReadIOs+delta.WriteIOs+delta.DiscardIOs == 0 && delta.TimeInQueue == 0 {
			return
		}
		if first < before.at {
			c.diskValues(p, first, &sample.DiskDelta{Interval: 1})
		}
	}
	c.diskValues(p, before.at, &delta)
}

func (c *counters) diskValues(p panel, at time.Duration, d *sample.DiskDelta) {
	const milli = 1e3
	seconds := d.Interval.Seconds()
	c.set(p, "read", "B/s", at, float64(d.ReadBytes)/seconds)
	c.set(p, "written", "B/s", at, float64(d.WriteBytes)/seconds)
	if read, ok := d.ReadAwait(); ok || d.ReadIOs == 0 { // 0 without an operation, as in iostat
		c.set(p, "await of reads", "ms", at, read*milli)
	}
	if written, ok := d.WriteAwait(); ok || d.WriteIOs == 0 {
		c.set(p, "await of writes", "ms", at, written*milli)
	}
	if depth, ok := d.QueueDepth(); ok {
		c.set(p, "operations in flight", "", at, depth)
	}
}

func (c *counters) press(at time.Duration, p *sample.Pressure) {
	before, ok := swap(c, c.pressure, pressureKey{p.Scope, p.Resource}, at, *p)
	if !ok {
		return
	}
	to := panel{"Pressure", rankPressure}
	if p.Scope != sample.HostScope {
		to.name += " of " + p.Scope
	}
	share := func(now, then time.Duration) float64 {
		return percent * max(0, (now-then).Seconds()) / (at - before.at).Seconds()
	}
	c.set(to, string(p.Resource)+" some", "%", before.at, share(p.Some, before.value.Some))
	c.set(to, string(p.Resource)+" full", "%", before.at, share(p.Full, before.value.Full))
}

func (c *counters) core(at time.Duration, cores []sample.Core) {
	var now coresBefore
	for i := range cores {
		now.busy += cores[i].Busy()
		now.iowait += cores[i].IOWait
	}
	before, ok := swap(c, c.cores, "", at, now)
	if !ok {
		return
	}
	to, seconds := panel{"CPU", rankCPU}, (at - before.at).Seconds()
	share := func(before, now time.Duration) float64 { return max(0, (now-before).Seconds()/seconds) }
	c.set(to, "cores at work", "", before.at, share(before.value.busy, now.busy))
	c.set(to, "cores idle while a task waits for I/O", "", before.at, share(before.value.iowait, now.iowait))
}

func jobPanel(id string) panel { return panel{"Job " + id, rankJobs} }

func (c *counters) job(at time.Duration, j *sample.Job) {
	before, ok := swap(c, c.jobs, j.ID, at, sample.Job{
		CPUTime: j.CPUTime, ReadBytes: j.ReadBytes, WriteBytes: j.WriteBytes, HasIO: j.HasIO,
	})
	if !ok {
		return
	}
	to, seconds := jobPanel(j.ID), (at - before.at).Seconds()
	c.set(to, "cores at work", "", before.at, max(0, (j.CPUTime-before.value.CPUTime).Seconds()/seconds))
	if j.HasIO && before.value.HasIO {
		c.set(to, "read", "B/s", before.at, grown(j.ReadBytes, before.value.ReadBytes)/seconds)
		c.set(to, "written", "B/s", before.at, grown(j.WriteBytes, before.value.WriteBytes)/seconds)
	}
}

func grown(now, then uint64) float64 {
	if now < then {
		return 0
	}
	return float64(now - then)
}

// gpuPanel names a GPU as nvidia-smi does.
func gpuPanel(g *sample.GPU) panel {
	name := g.ID
	if g.Driver != "" {
		name = sample.GPUName("", g.Index) + " " + g.Name // which has the maker in it
	}
	return panel{name, rankGPUs}
}

func (c *counters) gpu(at time.Duration, g *sample.GPU) {
	before, known := c.gpus[g.ID]
	if known && !c.due(before.at, at) || !known && len(c.gpus) >= maxCounters {
		return
	}
	works := g.Status == sample.GPUWorks && g.Has&sample.LacksBusy == 0
	c.gpus[g.ID] = gpuBefore{at, g.Busy, works, before.details, gpuPanel(g)}
	if g.Status != sample.GPUWorks {
		return
	}
	to := gpuPanel(g)
	if known && works && before.works {
		c.set(to, "busy", "%", before.at, percent*max(0, (g.Busy-before.busy).Seconds())/(at-before.at).Seconds())
	}
	for _, v := range []struct {
		has        sample.GPUFields
		name, unit string
		value      float64
	}{
		{sample.HasPower, "power", "W", g.Power}, {sample.HasTemperature, "temperature", "°C", g.Temperature},
		{sample.HasMemory, "memory used", "B", float64(g.MemoryUsed)},
	} {
		if g.Has&v.has != 0 {
			c.set(to, v.name, v.unit, at, v.value)
		}
	}
}

// gpuRatios are the details that are drawn.
var gpuRatios = []struct {
	quantity sample.GPUQuantity
	name     string
}{
	{sample.GPUSMActive, "SMs active"}, {sample.GPUTensorActive, "tensor cores active"},
	{sample.GPUDRAMActive, "memory bandwidth used"},
}

// gpuDetails draws means over the time since the query before.
func (c *counters) gpuDetails(d *sample.GPUDetail) {
	g, known := c.gpus[d.GPU]
	if !known || g.details != 0 && !c.due(g.details, d.At) {
		return
	}
	from := g.details
	g.details = d.At
	c.gpus[d.GPU] = g
	if from == 0 {
		return
	}
	for _, r := range gpuRatios {
		if value, ok := d.Values.Get(r.quantity); ok {
			c.set(g.panel, r.name, "%", from, percent*value)
		}
	}
}

func (c *counters) leftOut(wall func(time.Duration) time.Time) (all []string) {
	if c.budget.detail > 0 {
		all = append(all, fmt.Sprintf("counters have fewer values from %s on, at last one in %s",
			clockTimeOf(wall(c.budget.since)), explain.Duration(c.budget.detail.Seconds())))
	}
	if c.refused > 0 {
		all = append(all, fmt.Sprintf("there are more than %d counters; others are not drawn", maxCounters))
	}
	if c.dropped > 0 {
		all = append(all, sentence(c.dropped, "value", "of a counter is not drawn", "of counters are not drawn"))
	}
	return all
}
