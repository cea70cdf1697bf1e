package action

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// firstPause is that after the first try that failed; each further one is twice as long, and up to half of it is taken away
// at random. Six tries take from 15 to 31 s besides what they take themselves.
const firstPause = time.Second

// pause waits before another try; false when there is to be none.
func (a *running) pause(ctx context.Context, try int) bool {
	d := firstPause << try
	timer := time.NewTimer(d - rand.N(d/2))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-a.ending:
	case <-ctx.Done():
	}
	return false
}

var errTooOften = errors.New("it has been started as often as it may in a minute: raise per_minute")

// limit is how often something may be done: at most perMinute times at once, and perMinute times a minute for long.
type limit struct {
	perMinute int
	left      float64
	at        time.Time // when left was right
}

func newLimit(perMinute int) *limit {
	return &limit{perMinute: perMinute, left: float64(perMinute), at: time.Now()}
}

// take says whether it may be done now. One goroutine calls it.
func (l *limit) take() bool {
	now := time.Now()
	most := float64(l.perMinute)
	l.left = min(most, l.left+now.Sub(l.at).Minutes()*most)
	l.at = now
	if l.left < 1 {
		return false
	}
	l.left--
	return true
}
