package export

import (
	"errors"
	"math/rand/v2"
	"time"
)

// Bounds of the pause between two tries to send a batch.
const (
	firstPause   = time.Second
	longestPause = time.Minute
	// longestThrottle bounds what a backend may ask for: a header with a wrong date should not end the export.
	longestThrottle = 10 * time.Minute
)

// pauses doubles with every failure, and takes away up to half of it at random, so that the many agents of
// a cluster do not come back to a backend in step. The zero value is ready.
type pauses struct{ last time.Duration }

func (p *pauses) reset() { p.last = 0 }

// next is the pause after a failure: what the backend asked for, where that is longer.
func (p *pauses) next(err error) time.Duration {
	p.last = min(max(2*p.last, firstPause), longestPause)
	d := p.last - rand.N(p.last/2)
	var asked *throttle
	if errors.As(err, &asked) {
		d = max(d, min(asked.after, longestThrottle))
	}
	return d
}
