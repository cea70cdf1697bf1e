package probe

import (
	"os"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/state/ceiling"
)

// measuredWait is how long Start waits: a file system may hang.
const measuredWait = 100 * time.Millisecond

// Measured reads the ceilings that stallspan bench measured, from a file next to that of the baselines.
type Measured struct {
	probe *Probe
	path  string
	note  func(source string, err error)
	apply func([]sample.Ceiling)

	reading sync.Mutex  // guards the fields below
	info    os.FileInfo // nil: the file did not exist
	all     []ceiling.Measured
}

// NewMeasured reads the file at path. apply receives the ceilings of the disks that are present, after each read.
func (p *Probe) NewMeasured(path string, note func(string, error), apply func([]sample.Ceiling)) *Measured {
	return &Measured{probe: p, path: path, note: note, apply: apply}
}

// Start reads the file before the first samples, so that the first window has the ceilings. A nil Measured does
// nothing.
func (m *Measured) Start() {
	if m == nil {
		return
	}
	select {
	case <-m.Read():
	case <-time.After(measuredWait):
	}
}

// Refresh reads the file again. It does not wait. A nil Measured does nothing.
func (m *Measured) Refresh() {
	if m != nil {
		m.Read()
	}
}

// Read reads the file now, in the background, and then closes done. While another read runs, or after the probe has
// stopped, it does nothing and leaves done open.
func (m *Measured) Read() (done <-chan struct{}) {
	over := make(chan struct{})
	m.probe.tasks.Start(func() {
		if m.reading.TryLock() {
			defer close(over)
			defer m.reading.Unlock()
			m.load()
		}
	})
	return over
}

// load reads the file if it has changed. It matches the disks each time: a name may belong to another disk by now.
func (m *Measured) load() {
	info, _ := os.Stat(m.path)
	same := info != nil && m.info != nil && os.SameFile(info, m.info) && info.ModTime().Equal(m.info.ModTime())
	if !same {
		m.info, m.all = info, nil
		if info != nil {
			all, err := ceiling.Load(m.path)
			m.note("ceilings", err)
			m.all = all
		}
	}
	m.apply(ceiling.Present(m.probe.root, m.all))
}
