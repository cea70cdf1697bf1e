package gpu

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// meter adds up the durations of calls by name. It is safe for concurrent use.
type meter struct {
	mu    sync.Mutex
	calls map[string]sample.DriverCall
}

func (m *meter) add(name string, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls == nil {
		m.calls = map[string]sample.DriverCall{}
	}
	c := m.calls[name]
	m.calls[name] = sample.DriverCall{Name: name, Count: c.Count + 1, Time: c.Time + took, Longest: max(c.Longest, took)}
}

// sums returns the sums by name.
func (m *meter) sums() []sample.DriverCall {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []sample.DriverCall
	for _, name := range slices.Sorted(maps.Keys(m.calls)) {
		list = append(list, m.calls[name])
	}
	return list
}
