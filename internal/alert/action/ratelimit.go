package action

import (
	"errors"
	"time"
)

var errRateLimited = errors.New("not run: it has reached its limit of runs a minute; raise per_minute")

// rateLimit is a token bucket with a burst and a rate of perMinute. It is used by one goroutine.
type rateLimit struct {
	perMinute float64
	tokens    float64
	updated   time.Time
}

func newRateLimit(perMinute int) *rateLimit {
	return &rateLimit{perMinute: float64(perMinute), tokens: float64(perMinute), updated: time.Now()}
}

// allow takes a token and reports whether there was one.
func (l *rateLimit) allow() bool {
	now := time.Now()
	l.tokens = min(l.perMinute, l.tokens+now.Sub(l.updated).Minutes()*l.perMinute)
	l.updated = now
	if l.tokens < 1 {
		return false
	}
	l.tokens--
	return true
}
