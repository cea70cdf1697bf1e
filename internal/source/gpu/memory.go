package gpu

import (
	"maps"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// memoryInterval is between two readings of the memory of a watched GPU: a call of the driver that takes microseconds.
const memoryInterval = 100 * time.Millisecond

// maxWatched bounds the GPUs whose memory is watched at the same time.
const maxWatched = 64

// memoryInUse has the newest reading of the memory of GPUs, and which GPUs are watched. It is safe for concurrent use.
type memoryInUse struct {
	mu      sync.Mutex
	newest  map[string]usedAt
	watched map[string]time.Duration // until when
}

func newMemoryInUse() *memoryInUse {
	return &memoryInUse{newest: map[string]usedAt{}, watched: map[string]time.Duration{}}
}

type usedAt struct {
	bytes uint64
	at    time.Duration // Stamp.Mono
}

// WatchMemory has the memory in use of GPUs read ten times a second until a moment, where it is read once a second
// otherwise. It returns at once. Rows are not affected: see Memory.
func (s *Source) WatchMemory(ids []string, until time.Duration) {
	if s.memory.watch(ids, sample.Now().Mono, until) {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
}

// Memory returns the newest reading of the memory in use of a GPU, in bytes, and when that was; 0 for none.
func (s *Source) Memory(id string) (used uint64, at time.Duration) {
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	newest := s.memory.newest[id]
	return newest.bytes, newest.at
}

// watch reports whether one of the GPUs was not watched before.
func (m *memoryInUse) watch(ids []string, now, until time.Duration) (added bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.watched) >= maxWatched {
		maps.DeleteFunc(m.watched, func(_ string, until time.Duration) bool { return now >= until })
	}
	for _, id := range ids {
		old, known := m.watched[id]
		if !known && len(m.watched) >= maxWatched {
			continue
		}
		if !known || until > old {
			m.watched[id] = until
		}
		added = added || !known
	}
	return added
}

// isWatched forgets a GPU whose time is over.
func (m *memoryInUse) isWatched(id string, now time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	until, known := m.watched[id]
	if known && now >= until {
		delete(m.watched, id)
	}
	return known && now < until
}

// set takes over a reading.
func (m *memoryInUse) set(id string, bytes uint64, at time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.newest[id] = usedAt{bytes, at}
}

// keep forgets the GPUs that are not listed any more.
func (m *memoryInUse) keep(devices []*deviceState) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.newest) <= len(devices) && len(m.watched) <= len(devices) {
		return
	}
	listed := map[string]bool{}
	for _, g := range devices {
		listed[g.info.ID] = true
	}
	maps.DeleteFunc(m.newest, func(id string, _ usedAt) bool { return !listed[id] })
	maps.DeleteFunc(m.watched, func(id string, _ time.Duration) bool { return !listed[id] })
}

// watchedMemory returns the GPUs whose memory is to be read now, because they are watched.
func (r *run) watchedMemory() (due []*deviceState) {
	for _, g := range r.devices {
		g.watched = g.readable() && r.memory.isWatched(g.info.ID, r.began)
		if g.watched && r.began >= g.memoryAt+memoryInterval-memoryInterval/10 {
			due = append(due, g)
		}
	}
	return due
}

// applyMemory takes over the memory of a reading.
func (r *run) applyMemory(g *deviceState, got *reading) {
	if got.gauges.Has&sample.HasMemory != 0 {
		g.memoryAt = got.clocks.at.Mono
		r.memory.set(g.info.ID, got.gauges.MemoryUsed, g.memoryAt)
	} else if got.onlyMemory {
		g.memoryAt = r.began // it is not read again at once
	}
}
