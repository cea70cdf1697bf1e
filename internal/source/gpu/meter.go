package gpu

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// meter adds up the durations of calls by name. It is safe for concurrent use.
type meter struct {
	mu    sync.Mutex
	calls []sample.DriverCall // by name
	place map[string]int
}

func (m *meter) add(name string, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i, known := m.place[name]
	if !known {
		i = m.insert(name)
	}
	c := &m.calls[i]
	c.Count++
	c.Time += took
	c.Longest = max(c.Longest, took)
}

func (m *meter) insert(name string) int {
	i, _ := slices.BinarySearchFunc(m.calls, name, func(c sample.DriverCall, name string) int {
		return strings.Compare(c.Name, name)
	})
	m.calls = slices.Insert(m.calls, i, sample.DriverCall{Name: name})
	m.place = make(map[string]int, len(m.calls))
	for n, c := range m.calls {
		m.place[c.Name] = n
	}
	return i
}

// sums returns a copy of the sums.
func (m *meter) sums() []sample.DriverCall {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.calls)
}
