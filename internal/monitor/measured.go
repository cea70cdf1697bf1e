package monitor

import (
	"os"
	"sync/atomic"
	"time"

	"github.com/stallspan/stallspan/internal/ceiling"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
)

// measured is what stallspan bench has found out about the disks, in a file beside that of the baselines.
type measured struct {
	busy atomic.Bool // somebody is reading the file
	next time.Time   // when it is looked at again; m.mu is held

	// Of whoever is busy alone.
	seen os.FileInfo // nil: it was not there
	all  []ceiling.Measured

	found   []sample.Ceiling // of the disks that are there, until the next round takes them over; m.mu is held
	pending bool
	told    bool // something was taken over before
}

// measuredEvery is between two looks at the file, measuredWait for how long the first one is waited for: a file system may
// hang.
const (
	measuredEvery = time.Minute
	measuredWait  = 100 * time.Millisecond
)

// lookForMeasured reads the file where it has changed, and finds out which of its disks are there. It does not wait for
// that; done, where it is not nil, is closed after it.
func (m *Monitor) lookForMeasured(done chan<- struct{}) {
	if !m.config.Slow.HasBaseline() || m.config.Recorded || !m.measured.busy.CompareAndSwap(false, true) {
		return
	}
	m.errands.run(func() {
		defer m.measured.busy.Store(false)
		if done != nil {
			defer close(done)
		}
		m.readMeasured(ceiling.PathNextTo(m.config.Slow.Baseline))
	})
}

// firstMeasured does so before the first reading, so that the first window knows of it.
func (m *Monitor) firstMeasured() {
	m.measured.next = time.Now().Add(measuredEvery)
	if !m.config.Slow.HasBaseline() || m.config.Recorded {
		return
	}
	done := make(chan struct{})
	m.lookForMeasured(done)
	late := time.NewTimer(measuredWait)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
	}
}

// againMeasured does so once a minute. m.mu is not held.
func (m *Monitor) againMeasured() {
	now := time.Now()
	m.mu.Lock()
	due := !now.Before(m.measured.next)
	if due {
		m.measured.next = now.Add(measuredEvery)
	}
	m.mu.Unlock()
	if due {
		m.lookForMeasured(nil)
	}
}

func (m *Monitor) readMeasured(path string) {
	info, _ := os.Stat(path)
	x := &m.measured
	if same := info != nil && x.seen != nil && os.SameFile(info, x.seen) && info.ModTime().Equal(x.seen.ModTime()); !same {
		x.seen, x.all = info, nil
		if info != nil {
			all, err := ceiling.Load(path)
			m.problems.note("ceilings", err)
			x.all = all
		}
	}
	found := ceiling.Present(m.config.Root, x.all) // each time: a disk may be another one by now
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(found) > 0 || x.told {
		x.found, x.pending = found, true
	}
}

// tickMark takes over what was found, with the round of readings whose mark it gives: a replay does so there, too.
// m.mu is held.
func (m *Monitor) tickMark() recording.Mark {
	mark := recording.Mark{Op: recording.Tick}
	if x := &m.measured; x.pending {
		mark.Ceilings = make([]recording.Ceiling, 0, len(x.found))
		for _, c := range x.found {
			mark.Ceilings = append(mark.Ceilings, recording.Ceiling{Disk: c.Disk, Read: c.Read, ReadAwait: c.ReadAwait})
		}
		m.ceilings.Know(x.found)
		x.pending, x.told = false, len(x.found) > 0
	}
	return mark
}

// knowRecorded takes over what a recording says was taken over. m.mu is held.
func (m *Monitor) knowRecorded(told []recording.Ceiling) {
	if told == nil {
		return
	}
	var all []sample.Ceiling
	for _, c := range told {
		all = append(all, sample.Ceiling{Disk: c.Disk, Read: c.Read, ReadAwait: c.ReadAwait})
	}
	m.ceilings.Know(all)
}
