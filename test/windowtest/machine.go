// Package windowtest plays readings of a small machine into a history, for tests of windows and their explanations.
package windowtest

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

// Tick is the time between two readings.
const Tick = 100 * time.Millisecond

// Machine has one disk "sda", one job "job" and perhaps one GPU "gpu0". Its fields are the counters of the next
// reading.
type Machine struct {
	History *history.History
	Ledger  *ledger.Estimator
	Target  ledger.Target
	Now     time.Duration

	Disk sample.Disk
	Some time.Duration // I/O pressure
	Core sample.Core
	Job  sample.Job
	GPU  time.Duration // busy

	WithoutJob bool // the job is over

	t        testing.TB
	hasGPU   bool
	pressure bool
}

// New returns a machine after its first reading.
func New(t testing.TB, hasGPU bool) *Machine {
	t.Helper()
	return start(t, hasGPU, true)
}

// NewWithoutPressure is New on a kernel without PSI.
func NewWithoutPressure(t testing.TB, hasGPU bool) *Machine {
	t.Helper()
	return start(t, hasGPU, false)
}

func start(t testing.TB, hasGPU, pressure bool) *Machine {
	t.Helper()
	h, err := history.New(history.Config{})
	if err != nil {
		t.Fatal(err)
	}
	m := &Machine{
		t: t, hasGPU: hasGPU, pressure: pressure, History: h, Ledger: ledger.New(h), Now: Tick,
		Disk:   sample.Disk{Name: "sda", Leaf: true, ReadIOs: 1},
		Target: ledger.Target{Job: "job"}, Job: sample.Job{ID: "job", HasIO: true},
	}
	if hasGPU {
		m.Target.GPU = "gpu0"
	}
	m.Ledger.SetTargets([]ledger.Target{m.Target})
	m.Read()
	return m
}

func (m *Machine) samples() []sample.Sample {
	at := sample.Stamp{Mono: m.Now, Wall: time.Unix(1_700_000_000, 0).Add(m.Now)}
	all := []sample.Sample{
		{At: at, Disks: []sample.Disk{m.Disk}},
		{At: at, Cores: []sample.Core{m.Core}},
	}
	if !m.WithoutJob {
		all = append(all, sample.Sample{At: at, Jobs: []sample.Job{m.Job}})
	}
	if m.pressure {
		some := sample.Pressure{Resource: sample.IO, Some: m.Some, Full: m.Some / 2}
		all = append(all, sample.Sample{At: at, Pressures: []sample.Pressure{some}})
	}
	if m.hasGPU {
		all = append(all, sample.Sample{At: at, GPUs: []sample.GPU{{ID: "gpu0", Busy: m.GPU}}})
	}
	return all
}

// Read adds a reading to the history.
func (m *Machine) Read() {
	m.t.Helper()
	for _, s := range m.samples() {
		if err := m.History.Append(&s); err != nil {
			m.t.Fatal(err)
		}
	}
	if _, err := m.Ledger.Advance(nil); err != nil {
		m.t.Fatal(err)
	}
}

// Step reads after a tick in which the GPU was busy, and the job waited for the disk and used a CPU, for so long.
func (m *Machine) Step(busy, waited, cpu time.Duration) {
	m.t.Helper()
	m.Now += Tick
	m.GPU += busy
	m.Some += waited
	m.Core.Name, m.Core.User, m.Core.Idle = "cpu0", m.Core.User+cpu, m.Core.Idle+Tick-cpu
	m.Job.CPUTime += cpu
	if waited > 0 {
		m.Disk.ReadIOs += 25
		m.Disk.ReadBytes += 25 * 4096
		m.Disk.ReadTicks += waited
		m.Disk.IOTicks += waited
		m.Disk.TimeInQueue += waited
		m.Job.ReadBytes += 25 * 4096
		m.Job.ReadChars += 25 * 4096
	}
	m.Read()
}

// Begin returns a window of the job that starts now.
func (m *Machine) Begin(kind window.Kind) window.Window {
	w := window.Window{Kind: kind, Job: "job"}
	w.Start, w.StartEdge = m.edge()
	return w
}

// End ends a window now.
func (m *Machine) End(w *window.Window) { w.End, w.EndEdge = m.edge() }

func (m *Machine) edge() (sample.Stamp, *history.Edge) {
	e := &history.Edge{}
	for _, s := range m.samples() {
		m.History.Observe(e, &s)
	}
	m.Ledger.Estimate(history.Point{At: m.Now, Edge: e})
	return m.samples()[0].At, e
}

// Info is what a report of the job needs to know of this machine.
func (m *Machine) Info() window.Machine {
	info := window.Machine{Leaves: []string{"sda"}, Target: m.Target, Pressure: m.pressure, Scope: window.Process}
	if m.hasGPU {
		info.GPUs = []string{"gpu0"}
	}
	return info
}

// Report ends a window of the job now, and reports on it.
func (m *Machine) Report(w window.Window) *window.Report {
	m.End(&w)
	return window.Make(m.History, &w, m.Info())
}
