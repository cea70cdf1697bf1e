package gpu

import (
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// memoryInterval is between two readings of the memory of a watched GPU: a call of the driver that takes microseconds.
const memoryInterval = 100 * time.Millisecond

// memoryInUse has the newest reading of the memory of the listed GPUs, and until when they are watched. It is safe for
// concurrent use.
type memoryInUse struct {
	mu   sync.Mutex
	gpus map[string]usedMemory
}

func newMemoryInUse() *memoryInUse { return &memoryInUse{gpus: map[string]usedMemory{}} }

type usedMemory struct {
	bytes        uint64
	at           time.Duration // Stamp.Mono; 0 for none
	watchedUntil time.Duration // 0 for not watched
}

func (g *usedMemory) isWatched(now time.Duration) bool {
	return g.watchedUntil != 0 && now < g.watchedUntil
}

// WatchMemory has the memory in use of GPUs read ten times a second until a moment, where it is read once a second
// otherwise. It returns at once. Rows are not affected: see Memory.
func (s *Source) WatchMemory(ids []string, until time.Duration) {
	now, added := sample.Now().Mono, false
	for _, id := range ids {
		s.memory.change(id, func(g *usedMemory) {
			if !g.isWatched(now) {
				g.watchedUntil, added = until, true
			}
			g.watchedUntil = max(g.watchedUntil, until)
		})
	}
	if added {
		s.WakeUp()
	}
}

// Memory returns the newest reading of the memory in use of a GPU, in bytes, and when that was; 0 for none.
func (s *Source) Memory(id string) (used uint64, at time.Duration) {
	s.memory.change(id, func(g *usedMemory) { used, at = g.bytes, g.at })
	return used, at
}

// change changes what is known of a GPU, if it is listed.
func (m *memoryInUse) change(id string, change func(*usedMemory)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if g, listed := m.gpus[id]; listed {
		change(&g)
		m.gpus[id] = g
	}
}

// keep forgets the GPUs that are not listed any more.
func (m *memoryInUse) keep(runs []*run) {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.gpus
	m.gpus = map[string]usedMemory{}
	for _, r := range runs {
		for _, g := range r.devices {
			m.gpus[g.info.ID] = before[g.info.ID]
		}
	}
}

// watchedMemory returns the GPUs whose memory is to be read now, because they are watched.
func (r *run) watchedMemory() (due []*deviceState) {
	for _, g := range r.devices {
		r.memory.change(g.info.ID, func(m *usedMemory) { g.watched = g.readable() && m.isWatched(r.began) })
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
		r.memory.change(g.info.ID, func(m *usedMemory) { m.bytes, m.at = got.gauges.MemoryUsed, g.memoryAt })
	} else if got.onlyMemory {
		g.memoryAt = r.began // it is not read again at once
	}
}
