package gpu

import (
	"maps"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// fakeDetails are a fake GPU's details. What is nil or missing is not supported.
type fakeDetails struct {
	fields  map[uint32]func() field // without id and scope
	values  map[query]func() sample.GPUValues
	gpm     map[uint32]func(since time.Duration) float64
	reasons func() uint64
	errs    map[query]error
	watched bool

	samples []time.Time
}

// count counts a call and returns its error.
func (g *fakeGPU) count(q query) error {
	g.d.set(func() { g.d.tally(q.String()) })
	if err := g.enter(); err != nil {
		return err
	}
	g.d.mu.Lock()
	defer g.d.mu.Unlock()
	if g.details == nil {
		return codeNotSupported
	}
	return g.details.errs[q]
}

// tally counts a call, or a field value, by name. The caller holds d.mu.
func (d *fakeDriver) tally(name string) {
	if d.counts == nil {
		d.counts = map[string]int{}
	}
	d.counts[name]++
}

func (d *fakeDriver) counted() (counts map[string]int) {
	d.set(func() { counts, d.counts = maps.Clone(d.counts), nil })
	return counts
}

func (g *fakeGPU) query(q query, into *sample.GPUValues) error {
	if err := g.count(q); err != nil {
		return err
	}
	value := g.details.values[q]
	if value == nil {
		return codeNotSupported
	}
	*into = value()
	return nil
}

func (g *fakeGPU) fields(list []field) error {
	if err := g.count(queryFields); err != nil {
		return err
	}
	for i, f := range list {
		g.d.set(func() { g.d.tally(fieldName(f.id)) })
		if answer := g.details.fields[f.id]; answer != nil {
			list[i] = answer()
			list[i].id, list[i].scope = f.id, f.scope
		} else {
			list[i].err = codeNotSupported
		}
	}
	return nil
}

func (g *fakeGPU) gpmSample() error {
	if err := g.count(queryGPM); err != nil {
		return err
	}
	if g.details.gpm == nil {
		return codeNotSupported
	}
	g.details.samples = append(g.details.samples, time.Now())
	return nil
}

func (g *fakeGPU) gpmMetrics(list []metric) error {
	n := len(g.details.samples)
	since := g.details.samples[n-1].Sub(g.details.samples[n-2])
	for i, m := range list {
		if answer := g.details.gpm[m.id]; answer != nil {
			list[i].value, list[i].err = answer(since), nil
		} else {
			list[i].err = codeNotSupported
		}
	}
	return nil
}

func (g *fakeGPU) clockEventReasons() (uint64, error) {
	if err := g.count(queryReasons); err != nil {
		return 0, err
	}
	if g.details.reasons == nil {
		return 0, codeNotSupported
	}
	return g.details.reasons(), nil
}

func (g *fakeGPU) registerEvents() error {
	if err := g.count(queryXIDs); err != nil {
		return err
	}
	g.details.watched = true
	return nil
}

func (d *fakeDriver) events() (list []xidEvent, err error) {
	d.set(func() { list, d.xids, err = d.xids, nil, d.eventErr })
	return list, err
}

func (d *fakeDriver) stats() driverStats {
	n := uint64(d.sessionsBegun())
	return driverStats{calls: []sample.DriverCall{{Name: "nvmlInit_v2", Count: n}}, sessions: n}
}

// constant returns a field with a constant value.
func constant(value float64) func() field { return func() field { return field{value: value} } }
