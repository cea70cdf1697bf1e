package rhythm

import (
	"cmp"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
)

const (
	maxStores  = 64      // files that were stored last
	maxWrites  = 64      // files that are open for writing
	minStored  = 1 << 20 // bytes: a log grows by less while it is open
	manyStored = 4 << 20 // bytes by which the job may write otherwise
	// unread is the share of what an epoch reads that may still be read after something was stored: who stores it also
	// touches its own code.
	unread = 0.1
)

// stores follows the files that a job stores, as it stores checkpoints. What is stored between the last read of an
// epoch and the next epoch is no part of either.
type stores struct {
	busy    bool    // the job wrote much up to the last look
	written float64 // bytes that it had written up to the newest reading then

	open []writing
	all  []store // by time, the last ones: when a file was opened, its process was started, or much was written
	pids []int   // processes that have stored something, in this look
}

// writing is a file that is open for writing.
type writing struct {
	pid, fd int
	key     detect.FileKey
	size    int64 // bytes when it was opened
	stored  bool  // it is in stores.all
	born    store // when the process was started, which may be for this
	store
}

// store is when a file was opened for writing, with the counters then.
type store struct {
	at, open time.Duration
	from     levels
}

// add adds a store.
func (s *stores) add(one store) {
	s.all = append(s.all, one)
	slices.SortStableFunc(s.all, func(a, b store) int { return cmp.Compare(a.at, b.at) })
	s.all = s.all[max(0, len(s.all)-maxStores):]
}

// wrote takes what the job wrote since the last look, and returns it. Looks may miss a file that is stored at once, and
// one on a server shows its size only when it is closed.
func (s *stores) wrote(f *look, first bool) float64 {
	before := s.written
	now, ok := f.level(detect.WriteBytes, f.At)
	if !ok {
		return 0
	}
	busy := now-before >= manyStored
	if busy && !s.busy && !first { // the last reading was before the last look
		if at, ok := f.reached(detect.WriteBytes, before+1, f.Last-time.Second, f.At); ok {
			s.add(store{at, f.At - f.Last, f.levelsAt(at)})
		}
	}
	s.busy, s.written = busy, now
	return now - before
}

// look takes the files that are open for writing.
func (s *stores) look(f *look, first bool) {
	wrote := s.wrote(f, first)
	var now []writing
	s.pids = s.pids[:0]
	for i := range f.Files {
		x := &f.Files[i]
		if !x.Write || x.FD < 0 || len(now) == maxWrites {
			continue
		}
		w := writing{pid: x.PID, fd: x.FD, key: x.Key, stored: first}
		k := slices.IndexFunc(s.open, func(o writing) bool { return o.pid == w.pid && o.fd == w.fd && o.key == w.key })
		if k >= 0 {
			w = s.open[k]
		} else {
			w.size = max(0, x.Size-int64(wrote)) // it may have grown since the last look
			w.at, w.open = f.Last+(f.At-f.Last)/2, f.At-f.Last
			w.from = f.levelsAt(w.at)
			k := slices.IndexFunc(f.Processes, func(p detect.Process) bool { return p.PID == x.PID })
			if k > 0 { // the first is the program itself
				born := f.Processes[k].Started
				w.born = store{born, startTick, f.levelsAtBirth(born)}
			}
		}
		if !w.stored && x.Size-w.size >= minStored {
			w.stored = true
			s.pids = append(s.pids, w.pid)
			if w.born.at > 0 {
				s.add(w.born)
			}
			s.add(w.store)
		}
		now = append(now, w)
	}
	s.open = now
}

// between returns the first store that began in a time.
func (s *stores) between(from, until time.Duration) (store, bool) {
	for _, one := range s.all {
		if one.at >= from && one.at < until {
			return one, true
		}
	}
	return store{}, false
}

// after returns the first store of a pass that follows what it reads.
func (s *stores) after(x *span) (store, bool) {
	for _, one := range s.all {
		if one.at > x.begin && one.at < x.end {
			rest := span{from: one.from, to: x.to}
			if all := x.read(); all >= minRead && rest.read() <= unread*all {
				return one, true
			}
		}
	}
	return store{}, false
}
