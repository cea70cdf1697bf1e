package probe

import (
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/readers"
	"github.com/stallspan/stallspan/internal/window"
)

const (
	scanEvery  = time.Second            // minimum between two scans of all processes
	scanWait   = 100 * time.Millisecond // how long the end of a load waits for a scan
	scanSlack  = 100 * time.Millisecond // how far the scans may be from a load's ends in all; or a tenth of its length
	maxScans   = 16                     // kept for loads that are open
	MaxReaders = 3                      // processes in a report
)

// scans are scans of what all processes of the machine have read, taken when loads begin and end.
type scans struct {
	mu   sync.Mutex // guards the fields below
	last *scan
	open map[string]openLoad // by window id
}

// openLoad is a load that began, with a scan from about that time.
type openLoad struct {
	*scan
	at time.Duration // its start
}

// scan is one scan of all processes. Times are monotonic.
type scan struct {
	began  time.Duration
	done   chan struct{}
	ended  time.Duration  // valid when done
	totals readers.Totals // valid when done
}

// distance returns how far from a moment a process may have been read. The scan must be done.
func (s *scan) distance(at time.Duration) time.Duration {
	return max((s.began - at).Abs(), (s.ended - at).Abs())
}

// scan starts a scan, or returns the last one if it began less than a second ago. It returns nil while an older one is
// still running: this machine has no time for more.
func (s *scans) scan(p *Probe) *scan {
	now := sample.Now().Mono
	if s.last != nil && now-s.last.began < scanEvery {
		return s.last
	}
	if s.last != nil {
		select {
		case <-s.last.done:
		default:
			return nil
		}
	}
	fresh := &scan{began: now, done: make(chan struct{})}
	if !p.tasks.run(func() {
		defer close(fresh.done)
		fresh.totals = readers.Scan(p.root, p.reader)
		fresh.ended = sample.Now().Mono
	}) {
		return nil
	}
	s.last = fresh
	return fresh
}

// WatchReaders starts a scan for a model load that has begun. It ignores other windows.
func (p *Probe) WatchReaders(w *window.Window) {
	if w.Kind != window.ModelLoad {
		return
	}
	s := &p.scans
	s.mu.Lock()
	defer s.mu.Unlock()
	distinct := map[*scan]bool{}
	for _, other := range s.open {
		distinct[other.scan] = true
	}
	if len(distinct) >= maxScans {
		return
	}
	if began := s.scan(p); began != nil {
		if s.open == nil {
			s.open = map[string]openLoad{}
		}
		s.open[w.ID] = openLoad{began, w.Start.Mono}
	}
}

// ForgetReaders ends what WatchReaders began.
func (p *Probe) ForgetReaders(id string) { p.takeLoad(id) }

func (p *Probe) takeLoad(id string) openLoad {
	p.scans.mu.Lock()
	defer p.scans.mu.Unlock()
	load := p.scans.open[id]
	delete(p.scans.open, id)
	return load
}

// Readers returns the processes that read most in a load that ends at a moment. It waits up to 100 ms for a scan. It
// returns none if the scans at both ends were shared with other loads and are too far from the ends of this one.
func (p *Probe) Readers(id string, end time.Duration) []window.Reader {
	load := p.takeLoad(id)
	before := load.scan
	if before == nil {
		return nil
	}
	p.scans.mu.Lock()
	after := p.scans.scan(p)
	p.scans.mu.Unlock()
	if after == nil || after == before {
		return nil // the load was too short
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
	if before.distance(load.at)+after.distance(end) > max(scanSlack, (end-load.at)/10) {
		return nil
	}
	var list []window.Reader
	for _, r := range readers.Between(before.totals, after.totals, MaxReaders) {
		list = append(list, window.Reader{
			PID: r.PID, Bytes: r.Bytes, Name: readers.Name(p.root, r.PID), Group: readers.Group(p.root, r.PID),
		})
	}
	return list
}
