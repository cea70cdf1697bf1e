//go:build linux && (amd64 || arm64)

package schedule

import "github.com/stallspan/stallspan/internal/source/tcp"

// changes are those of the connections of jobs since they were asked for last.
type changes struct {
	wanted   bool // a process source asks for them
	list     []tcp.Change
	missing  bool
	lostThen uint64 // at the last call of EachConnection
}

// maxChanges bounds the changes between two readings: about 1 MiB.
const maxChanges = 4096

func (c *changes) add(change *tcp.Change) {
	switch {
	case !c.wanted:
	case len(c.list) >= maxChanges:
		c.missing = true
	default:
		c.list = append(c.list, *change)
	}
}

// EachConnection calls visit for each change of a connection that a followed thread has opened since the last call, in
// any network namespace. Those from before the first call are missing. It reports whether these are all, as EachRan
// does.
func (s *Source) EachConnection(visit func(*tcp.Change)) (all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.ended || s.tracing.Ended() != nil {
		return false
	}
	c := &s.connections
	c.wanted = true
	s.drain()
	for i := range c.list {
		visit(&c.list[i])
	}
	c.list = c.list[:0]
	all = !c.missing && s.lostNow() == c.lostThen
	c.missing, c.lostThen = false, s.lostNow()
	return all
}
