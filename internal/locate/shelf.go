package locate

import (
	"strings"
	"sync"
	"time"
)

// key is a question. Its strings have at most 64 bytes.
type key struct {
	container string
	pid       int32
	outside   bool // the program is known to run outside of any container
}

// answer is what was found for it.
type answer struct {
	place Place
	here  bool          // the container is of this machine
	full  bool          // all that was asked for was found
	until time.Duration // holds so long, on the Locator's clock
}

// mostKept bounds a shelf.
const mostKept = 1024

// shelf keeps answers. Those that were found and those that were not have one each, so that no stream of unknown names
// can push out what is asked for again and again.
type shelf struct {
	mu   sync.RWMutex // held for a look or a change only
	kept map[key]answer
}

func (s *shelf) get(k *key, now time.Duration) (answer, bool) {
	s.mu.RLock()
	a, ok := s.kept[*k]
	s.mu.RUnlock()
	return a, ok && now < a.until
}

// put keeps a. A full shelf loses what is too old, or else everything: it fills again with what is in use.
func (s *shelf) put(k *key, a answer, now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.kept[*k]; !known && len(s.kept) >= mostKept {
		for old, b := range s.kept {
			if b.until <= now {
				delete(s.kept, old)
			}
		}
		if len(s.kept) >= mostKept {
			clear(s.kept)
		}
	}
	if s.kept == nil {
		s.kept = make(map[key]answer)
	}
	own := *k
	own.container = strings.Clone(own.container) // the caller's may be a piece of a whole batch
	s.kept[own] = a
}
