package monitor

import (
	"slices"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/readers"
	"github.com/stallspan/stallspan/internal/window"
)

const (
	scanEvery    = time.Second            // between two looks at all processes, whoever wants them
	scanWait     = 100 * time.Millisecond // for which the end of a load waits for one
	scanSlack    = 100 * time.Millisecond // by which two looks may miss a load's ends in all, or by a tenth of its length
	mostScans    = 16                     // that are kept for loads that are open
	mostFetchers = 3                      // processes that are told of
)

// scans looks at what all processes of the machine fetched, as loads begin and end. It is safe for concurrent use.
type scans struct {
	mu   sync.Mutex
	last *scan
	open map[string]opened // loads, by their id
}

// opened is a load that began, and the look from about then.
type opened struct {
	*scan
	at time.Duration // its beginning
}

// scan is one look at all processes. Times are monotonic.
type scan struct {
	began  time.Duration
	done   chan struct{}
	ended  time.Duration  // when done
	totals readers.Totals // when done
}

// miss is how far from a moment a process may have been looked at. The look is done.
func (s *scan) miss(at time.Duration) time.Duration {
	return max((s.began - at).Abs(), (s.ended - at).Abs())
}

// scan begins a look, or gives one that began within the last second; nil where none can begin.
func (m *Monitor) scan() *scan {
	s := &m.scans
	now := sample.Now().Mono
	if s.last != nil && now-s.last.began < scanEvery {
		return s.last
	}
	if s.last != nil {
		select {
		case <-s.last.done:
		default:
			return nil // it still goes on: this machine has no time for more
		}
	}
	fresh := &scan{began: now, done: make(chan struct{})}
	if !m.errands.run(func() {
		fresh.totals = readers.Scan(m.config.Root)
		fresh.ended = sample.Now().Mono
		close(fresh.done)
	}) {
		return nil
	}
	s.last = fresh
	return fresh
}

// watchReaders has a look at all processes begin, for a load that has begun. m.mu is held.
func (m *Monitor) watchReaders(w *window.Window) {
	if w.Kind != window.ModelLoad {
		return
	}
	s := &m.scans
	s.mu.Lock()
	defer s.mu.Unlock()
	distinct := map[*scan]bool{}
	for _, other := range s.open {
		distinct[other.scan] = true
	}
	if len(distinct) >= mostScans {
		return
	}
	if began := m.scan(); began != nil {
		if s.open == nil {
			s.open = map[string]opened{}
		}
		s.open[w.ID] = opened{began, w.Start.Mono}
	}
}

// forgetReaders ends what watchReaders began, and gives it; without a look where there is none.
func (m *Monitor) forgetReaders(id string) opened {
	m.scans.mu.Lock()
	defer m.scans.mu.Unlock()
	began := m.scans.open[id]
	delete(m.scans.open, id)
	return began
}

// fetchers are the processes that fetched most in a load that ends at a moment. It waits for a look at all of them. There are
// none where the looks at both ends were shared with other loads, and lie too far from this one's to be about it.
func (m *Monitor) fetchers(id string, end Moment) []recording.Fetcher {
	load := m.forgetReaders(id)
	before := load.scan
	if before == nil {
		return nil
	}
	m.scans.mu.Lock()
	after := m.scan()
	m.scans.mu.Unlock()
	if after == nil || after == before {
		return nil // it was too short
	}
	late := time.NewTimer(scanWait)
	defer late.Stop()
	select {
	case <-after.done:
	case <-late.C:
		return nil
	}
	select {
	case <-before.done:
	default:
		return nil
	}
	if before.miss(load.at)+after.miss(end.At.Mono) > max(scanSlack, (end.At.Mono-load.at)/10) {
		return nil
	}
	var list []recording.Fetcher
	for _, r := range readers.Between(before.totals, after.totals, mostFetchers) {
		list = append(list, recording.Fetcher{
			PID: r.PID, Bytes: r.Bytes, Name: readers.Name(m.config.Root, r.PID), Group: readers.Group(m.config.Root, r.PID),
		})
	}
	return list
}

// ours marks the processes that belong to a window's job. m.mu is held.
func (m *Monitor) ours(list []recording.Fetcher, job string) {
	for i := range list {
		for k := range m.latest.Jobs.Processes {
			p := &m.latest.Jobs.Processes[k]
			list[i].Own = list[i].Own || job != "" && p.PID == list[i].PID && p.Job == job
		}
	}
}

// readersOf is what a report says of them.
func readersOf(list []recording.Fetcher) (all []window.Reader) {
	for _, f := range list[:min(len(list), mostFetchers)] {
		all = append(all, window.Reader(f))
	}
	return slices.Clip(all)
}
