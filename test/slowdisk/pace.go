package slowdisk

import (
	"sync"
	"time"
)

// credit is how far the link may fall behind its schedule and catch up, so that the way between program and server
// costs a continuous reader no throughput.
const credit = 2 * time.Millisecond

// model describes how a device serves requests: Width in parallel, Delay each, the rest queued in order of arrival. All
// of them share a link of BytesPerSecond. Zero is no limit.
type model struct {
	Delay          time.Duration
	Width          int
	BytesPerSecond int64
}

// pacer computes when a device that follows a model would complete a request. It is safe for concurrent use. All times
// are of one clock.
type pacer struct {
	mu    sync.Mutex
	model model
	slow  bool
	free  []time.Duration // when each of Width becomes free
	link  time.Duration   // when the link becomes free
}

// set switches the model on or off and clears the queue.
func (p *pacer) set(m model, slow bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.model, p.slow = m, slow
	p.free, p.link = make([]time.Duration, m.Width), 0
}

// done returns when to answer a request that arrived now: never before now.
func (p *pacer) done(now time.Duration, bytes int) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.slow {
		return now
	}
	end := now + p.model.Delay
	if len(p.free) > 0 {
		next := 0
		for i, free := range p.free {
			if free < p.free[next] {
				next = i
			}
		}
		end = max(now, p.free[next]) + p.model.Delay
		p.free[next] = end
	}
	if p.model.BytesPerSecond > 0 && bytes > 0 {
		took := time.Duration(float64(bytes) / float64(p.model.BytesPerSecond) * float64(time.Second))
		p.link = max(p.link, end-credit) + took
		end = max(end, p.link)
	}
	return end
}
