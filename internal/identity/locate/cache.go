package locate

import (
	"strings"
	"sync"
	"time"
)

// key is a query. Its strings have at most 64 bytes.
type key struct {
	container string
	pid       int32
	outside   bool // the program runs outside of any container
}

// answer is the result of a query.
type answer struct {
	place Place
	here  bool          // the container is of this machine
	full  bool          // the query was answered in full
	until time.Duration // expiry on the Locator's clock
}

// maxCached bounds a cache.
const maxCached = 1024

// cache holds answers until they expire. Hits and misses have one each, so that a stream of unknown names cannot evict
// the hits.
type cache struct {
	mu   sync.RWMutex
	kept map[key]answer
}

func (c *cache) get(k *key, now time.Duration) (answer, bool) {
	c.mu.RLock()
	a, ok := c.kept[*k]
	c.mu.RUnlock()
	return a, ok && now < a.until
}

// put adds an answer. A full cache drops the expired answers, or else all of them.
func (c *cache) put(k *key, a answer, now time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.kept[*k]; !known && len(c.kept) >= maxCached {
		for old, b := range c.kept {
			if b.until <= now {
				delete(c.kept, old)
			}
		}
		if len(c.kept) >= maxCached {
			clear(c.kept)
		}
	}
	if c.kept == nil {
		c.kept = make(map[key]answer)
	}
	own := *k
	own.container = strings.Clone(own.container) // the caller's may be part of a whole batch
	c.kept[own] = a
}
