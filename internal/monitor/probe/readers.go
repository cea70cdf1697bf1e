package probe

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/pagecache"
	"github.com/stallspan/stallspan/internal/source/process"
	"github.com/stallspan/stallspan/internal/window"
)

const (
	scanEvery  = time.Second            // minimum between two scans of all processes
	scanWait   = 100 * time.Millisecond // how long the end of a load waits for a scan
	scanSlack  = 100 * time.Millisecond // how far the scans may be from a load's ends in all; or a tenth of its length
	maxScans   = 16                     // kept for loads that are open
	maxEnded   = 16                     // and for loads that have ended: 20 KiB each with 300 processes
	MaxReaders = 3                      // processes in a report
)

// scans are scans of what all processes of the machine have read, taken when loads begin and end.
type scans struct {
	mu    sync.Mutex // guards the fields below
	last  *scan
	open  map[string]openLoad // by window id
	ended []pastLoad          // the newest last, one of each place
}

// openLoad is a load that began, with a scan from about that time.
type openLoad struct {
	*scan
	at     time.Duration // its start
	place  place
	root   string // the folder that is "/" for its process
	before *scan  // of the end of the last load of its path; nil without one
}

// place is a path, of the machine or as a container sees it.
type place struct {
	client, path string
	apart        bool
}

// pastLoad is a load that has ended.
type pastLoad struct {
	place
	*scan         // from about its end
	cached uint64 // bytes of its files in the page cache then
	cache  sample.PageCache
}

// past returns the last load of a place.
func (s *scans) past(at place) (pastLoad, bool) {
	i := slices.IndexFunc(s.ended, func(x pastLoad) bool { return x.place == at })
	if i < 0 {
		return pastLoad{}, false
	}
	return s.ended[i], true
}

// keep remembers a load that has ended, in place of the last one of its place, or of the oldest.
func (s *scans) keep(x pastLoad) {
	s.ended = slices.DeleteFunc(s.ended, func(old pastLoad) bool { return old.place == x.place })
	if len(s.ended) >= maxEnded {
		s.ended = slices.Delete(s.ended, 0, 1)
	}
	s.ended = append(s.ended, x)
}

// scan is one scan of all processes. Times are monotonic.
type scan struct {
	began  time.Duration
	done   chan struct{}
	ended  time.Duration // valid when done
	totals readTotals    // valid when done
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
	if !p.tasks.Start(func() {
		defer close(fresh.done)
		fresh.totals = scanProcesses(p.root, p.reader)
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
		load := openLoad{scan: began, at: w.Start.Mono}
		if w.Path != "" {
			load.place, load.root = p.place(w)
			last, _ := s.past(load.place)
			load.before = last.scan
		}
		s.open[w.ID] = load
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

// place returns where a window's path is, and the folder that is "/" there.
func (p *Probe) place(w *window.Window) (at place, root string) {
	root, apart := p.rootOf(w.PID)
	return place{w.Client, w.Path, apart}, root
}

// Readers returns the processes that read most in a load that ends at a moment, and those that moved most between the
// last load of its path and this one. It waits up to 100 ms for a scan. It returns none if the scans at both ends were
// shared with other loads and are too far from the ends of this one.
func (p *Probe) Readers(id string, end time.Duration) []window.Reader {
	load := p.takeLoad(id)
	before := load.scan
	if before == nil {
		return nil
	}
	p.scans.mu.Lock()
	after := p.scans.scan(p)
	p.scans.mu.Unlock()
	if load.place.path != "" && after != nil {
		p.remember(load.place, load.root, after)
	}
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
	list := p.between(before.totals, after.totals, false)
	if load.before != nil {
		select {
		case <-load.before.done:
			list = append(list, p.between(load.before.totals.moved(), before.totals.moved(), true)...)
		default:
		}
	}
	return list
}

func (p *Probe) between(from, to readTotals, before bool) (list []window.Reader) {
	for _, r := range topReaders(from, to, MaxReaders) {
		list = append(list, window.Reader{
			PID: r.PID, Bytes: r.Bytes, Name: strings.ToValidUTF8(process.Name(p.root, r.PID), "?"),
			Group: cgroupOf(p.root, r.PID), Before: before,
		})
	}
	return list
}

// remember keeps what the page cache has of a load's files at its end.
func (p *Probe) remember(at place, root string, after *scan) {
	held := await(p, at.client, pathTime, func() uint64 {
		found, err := pagecache.Look(root, at.path)
		if err != nil || !found.Known {
			return 0
		}
		return found.Cached
	})
	cache := pagecache.OfMachine(p.root)
	p.scans.mu.Lock()
	defer p.scans.mu.Unlock()
	p.scans.keep(pastLoad{at, after, held, cache})
}

// cachedBefore returns how many bytes of a path were in the page cache after its last load, and how many that has lost
// since, and not for lack of memory; 0 if unknown.
func (p *Probe) cachedBefore(at place) (cached, dropped uint64) {
	now := pagecache.OfMachine(p.root)
	p.scans.mu.Lock()
	defer p.scans.mu.Unlock()
	last, _ := p.scans.past(at)
	if last.cache.Kept > 0 && now.Kept > 0 {
		dropped = uint64(max(0, last.cache.Kept-now.Kept))
	}
	return last.cached, dropped
}
