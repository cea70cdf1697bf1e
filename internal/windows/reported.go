package windows

import (
	"slices"
	"sync"
	"time"
)

// Bounds of a Cache.
const (
	MaxReported      = 2048    // windows of a Cache
	maxReportedBytes = 4 << 20 // of their texts
)

// Reported is a window that ended, and that another program of this machine has measured and reported.
type Reported struct {
	ID, Client string
	Start, End time.Duration // on the monotonic clock
	Text       []byte        // the report in JSON, as the API has it; it is never changed
}

// Cache keeps the windows that other programs have measured, for as long as Keep. When it is full, the client that has
// the most bytes loses its oldest window, so that it cannot drive out those of others. The zero value is empty.
type Cache struct {
	mu    sync.Mutex
	all   []Reported // in the order in which they came
	bytes map[string]int
	total int
}

// Add keeps a window. It replaces one with the same ID of the same client.
func (s *Cache) Add(m Reported, now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bytes == nil {
		s.bytes = map[string]int{}
	}
	s.expire(now)
	s.drop(func(i int) bool { return s.all[i].ID == m.ID && s.all[i].Client == m.Client })
	s.all = append(s.all, m)
	s.bytes[m.Client] += len(m.Text)
	s.total += len(m.Text)
	for len(s.all) > MaxReported || s.total > maxReportedBytes {
		greedy := s.all[0].Client
		for client, n := range s.bytes {
			if n > s.bytes[greedy] {
				greedy = client
			}
		}
		first := slices.IndexFunc(s.all, func(old Reported) bool { return old.Client == greedy })
		s.drop(func(i int) bool { return i == first })
	}
}

// All returns the windows, in the order in which they came.
func (s *Cache) All(now time.Duration) []Reported {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(now)
	return slices.Clone(s.all)
}

func (s *Cache) expire(now time.Duration) {
	s.drop(func(i int) bool { return now-s.all[i].End > Keep })
}

// drop removes the windows at some places.
func (s *Cache) drop(gone func(i int) bool) {
	kept := 0
	for i := range s.all {
		m := s.all[i]
		if !gone(i) {
			s.all[kept] = m
			kept++
			continue
		}
		s.total -= len(m.Text)
		if s.bytes[m.Client] -= len(m.Text); s.bytes[m.Client] == 0 {
			delete(s.bytes, m.Client)
		}
	}
	clear(s.all[kept:])
	s.all = s.all[:kept]
}
