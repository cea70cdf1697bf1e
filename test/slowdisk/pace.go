package slowdisk

import (
	"sync"
	"time"
)

// credit is how far the link may be behind its schedule and catch up: what a request spends on its way between program
// and server is then no loss of throughput for one that reads without a pause.
const credit = 2 * time.Millisecond

// model is how a device serves requests: Width at once, Delay each, the rest queues in the order of arrival; then all
// of them share a link of BytesPerSecond. Zero is no limit.
type model struct {
	Delay          time.Duration
	Width          int
	BytesPerSecond int64
}

// pacer says when a device that is a model would be done with a request. It is safe for concurrent use. Times are of
// any one clock.
type pacer struct {
	mu    sync.Mutex
	model model
	slow  bool
	free  []time.Duration // when each of Width is free
	link  time.Duration   // when the link is
}

// set turns the model on or off. What was queued is forgotten.
func (p *pacer) set(m model, slow bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.model, p.slow = m, slow
	p.free, p.link = make([]time.Duration, m.Width), 0
}

// done takes a request in that came now, and gives the time at which it is to be answered: never before now.
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
