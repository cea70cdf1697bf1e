package rhythm

import (
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
)

const (
	maxStores = 64      // files that were stored last
	maxWrites = 64      // files that are open for writing
	minStored = 1 << 20 // bytes: a log grows by less while it is open
	// unread is the share of what an epoch reads that may still be read after something was stored.
	unread = 0.02
)

// stores follows the files that a job stores, as it stores checkpoints. What is stored between the last read of an epoch
// and the next epoch is no part of either.
type stores struct {
	open []writing
	all  []store // by time, the last ones
	pids []int   // processes that have stored something, in this look
}

// writing is a file that is open for writing.
type writing struct {
	pid, fd int
	key     detect.FileKey
	stored  bool // it is in stores.all
	store
}

// store is when a file was opened for writing, with the counters then.
type store struct {
	at, open time.Duration
	from     levels
}

// look takes the files that are open for writing.
func (s *stores) look(f *look, first bool) {
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
			w.at, w.open = f.Last+(f.At-f.Last)/2, f.At-f.Last
			w.from = f.levelsAt(w.at)
		}
		if !w.stored && (x.Size >= minStored || f.levelsAt(f.At)[detect.WriteBytes]-w.from[detect.WriteBytes] >= 4*minStored) {
			w.stored = true
			s.pids = append(s.pids, w.pid)
			if len(s.all) == maxStores {
				s.all = slices.Delete(s.all, 0, 1)
			}
			s.all = append(s.all, w.store)
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
