//go:build linux && (amd64 || arm64)

package bpf

import (
	"time"

	"github.com/stallspan/stallspan/internal/source/tcp"
)

// changes are those of the connections of jobs since they were asked for last.
type changes struct {
	wanted   bool // a process source asks for them
	list     []tcp.Change
	missing  bool
	lostThen uint64 // at the last call of EachConnection

	space    uint32          // network namespace of this program; 0 if it is not known
	away     map[uint64]bool // open connections of others, by cookie
	reported time.Duration   // when the kernel was asked for these last
}

// reportEvery is the time between two reports of a connection of another network namespace.
const reportEvery = time.Second

// maxChanges bounds the changes between two readings: about 1 MiB.
const maxChanges = 4096

func (c *changes) add(change *tcp.Change) {
	if c.away == nil {
		c.away, c.space = map[uint64]bool{}, tcp.Namespace()
	}
	if change.Closed {
		delete(c.away, change.Socket.Cookie)
	} else if change.Space != c.space && len(c.away) < maxChanges {
		c.away[change.Socket.Cookie] = true
	}
	switch {
	case !c.wanted:
	case len(c.list) >= maxChanges:
		c.missing = true
	default:
		c.list = append(c.list, *change)
	}
}

// EachConnection calls visit for each change of a connection that a followed thread has opened since the last call, in
// any network namespace, and once a second for each open one of other namespaces. Those from before the first call are
// missing. It reports whether these are all, as EachRan does.
func (s *Source) EachConnection(visit func(*tcp.Change)) (all bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.hasEvents() {
		return false
	}
	c := &s.connections
	if c.wanted = true; len(c.away) > 0 {
		if now := monotonic(); now-c.reported >= reportEvery && s.tracing.Report() == nil { // else at the next reading
			c.reported = now
		}
	}
	s.drain()
	for i := range c.list {
		visit(&c.list[i])
	}
	c.list = c.list[:0]
	all = !c.missing && s.lostNow() == c.lostThen
	c.missing, c.lostThen = false, s.lostNow()
	return all
}
