package gpu

import (
	"maps"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// fakeDetails are a fake GPU's details. What is nil or missing is not supported.
type fakeDetails struct {
	fields  map[uint32]func() answer
	values  map[quantity]func() float64 // of functions, after the unit's factor
	gpm     map[uint32]func(since time.Duration) float64
	reasons func() uint64
	errs    map[string]error // by call
	watched bool

	samples []time.Time
}

// count counts a call and returns its error.
func (g *fakeGPU) count(call string) error {
	g.d.set(func() { g.d.tally(call) })
	if err := g.enter(); err != nil {
		return err
	}
	g.d.mu.Lock()
	defer g.d.mu.Unlock()
	if g.details == nil {
		return codeNotSupported
	}
	return g.details.errs[call]
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

// read answers for details. The gauges of fakeGPU do not need them.
func (g *fakeGPU) read(call string, list []answer) error {
	if f := g.gauges()[call]; f != nil {
		numbers, err := f()
		for i := range list {
			list[i].number = numbers[rows[list[i].row].id]
		}
		return err
	}
	byArgument := []string{callClock, callViolation, callErrors, callThreshold}
	if err := g.count(call); err != nil && !slices.Contains(byArgument, call) {
		return err
	}
	switch call {
	case callGPM:
		if g.details.gpm == nil {
			return codeNotSupported
		}
		g.details.samples = append(g.details.samples, time.Now())
	case callEvents:
		g.details.watched = true
	}
	for i := range list {
		v := &list[i]
		v.number, v.narrow, v.err = 0, false, codeNotSupported
		if g.details != nil && g.details.errs[call] != nil {
			v.err = g.details.errs[call]
			continue
		}
		p := &rows[v.row]
		if call == callFields {
			g.d.set(func() { g.d.tally(p.name) })
		}
		switch {
		case g.details == nil:
		case call == callFields && g.details.fields[p.id] != nil:
			row := v.row
			*v = g.details.fields[p.id]()
			v.row = row
		case call == callGPM && g.details.gpm[p.id] != nil:
			n := len(g.details.samples)
			v.number, v.err = g.details.gpm[p.id](g.details.samples[n-1].Sub(g.details.samples[n-2])), nil
		case call == callReasons && g.details.reasons != nil:
			v.number, v.err = float64(g.details.reasons()), nil
		case call != callFields && call != callGPM && p.quantity != throttleReasons && g.details.values[p.quantity] != nil:
			v.number, v.err = g.details.values[p.quantity]()/p.unit.factor, nil
		case p.quantity == nothing:
			v.err = nil
		}
	}
	if single := len(list) == 1 || call == callRows || call == callPages; single && call != callFields && call != callGPM {
		return list[0].err // of the whole call
	}
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
func constant(number float64) func() answer { return func() answer { return answer{number: number} } }
