package windows

import (
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/trust"
)

// Bounds of a Cache.
const (
	MaxReported      = 2048    // windows of a Cache
	maxReportedBytes = 4 << 20 // of their JSON
)

// Reported is a window that ended, and that another program of this machine has measured and reported.
type Reported struct {
	Report *explain.Report // it is never changed
	Size   int             // bytes of it in JSON

	Client     string
	Start, End time.Duration // on the monotonic clock
}

// Cache keeps the windows that other programs have measured, for as long as Keep. When it is full, who has most loses
// the oldest: see trust.Queue. The zero value is empty.
type Cache struct {
	mu  sync.Mutex
	all trust.Queue[Reported]
}

// Add keeps a window. It replaces one with the same ID of the same client.
func (s *Cache) Add(m Reported, now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.Size = maxReportedBytes
	s.all.Remove(func(old *Reported) bool {
		return now-old.End > Keep || old.Report.ID == m.Report.ID && old.Client == m.Client
	})
	s.all.Add(trust.Lane(m.Client), max(m.Size, maxReportedBytes/MaxReported), m)
}

// All returns the windows, in the order in which they came.
func (s *Cache) All(now time.Duration) []Reported {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all.Remove(func(old *Reported) bool { return now-old.End > Keep })
	all, _ := s.all.From(0, MaxReported)
	return all
}
