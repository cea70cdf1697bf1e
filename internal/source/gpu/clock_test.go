package gpu

import (
	"math"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// suspended is a machine that was up for two hours and suspended for one of them.
var suspended = clocks{
	at:        sample.Stamp{Mono: time.Minute, Wall: time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC)},
	monotonic: time.Hour, boot: 2 * time.Hour,
}

func TestClocksAfterShortSuspension(t *testing.T) {
	c := suspended
	c.boot = c.monotonic + 5*time.Minute
	for d := monotonicClock; d <= bootClock; d++ {
		raw := uint64((c.now(d) - time.Second) / time.Microsecond)
		if got := c.domainOf([]utilSample{{timestamp: raw, value: 1}}); got != d {
			t.Errorf("got clock %d, want %d", got, d)
		}
	}
}

func TestDomainOf(t *testing.T) {
	for d := unixClock; d <= bootClock; d++ {
		for _, age := range []time.Duration{-time.Millisecond, 0, 100 * time.Millisecond, 20 * time.Second} {
			raw := uint64((suspended.now(d) - age) / time.Microsecond)
			for _, points := range [][]utilSample{
				{{timestamp: raw, value: 1}},
				{{value: 1}, {timestamp: raw, value: 1}},
				{{timestamp: raw, value: 1}, {timestamp: math.MaxUint64, value: 1}, {timestamp: 1, value: 1}},
			} {
				if got := suspended.domainOf(points); got != d {
					t.Errorf("clock %d, age %v: got clock %d", d, age, got)
				}
			}
			if at, ok := suspended.place(d, raw); !ok || at != suspended.at.Mono-max(age, 0) {
				t.Errorf("clock %d, age %v: got %v, %v, want %v", d, age, at, ok, suspended.at.Mono-max(age, 0))
			}
		}
	}
}

func TestPlaceRejectsGarbage(t *testing.T) {
	for d := unknownClock; d <= bootClock; d++ {
		now := uint64(suspended.now(d) / time.Microsecond)
		for _, raw := range []uint64{0, 1, math.MaxUint64, math.MaxInt64, now + 1e6, now - 3600e6/2} {
			if at, ok := suspended.place(d, raw); ok {
				t.Errorf("clock %d: got %v for timestamp %d, want none", d, at, raw)
			}
		}
	}
	points := []utilSample{{value: 1}, {timestamp: 5, value: 1}, {timestamp: math.MaxUint64, value: 1}}
	if got := suspended.domainOf(points); got != unknownClock {
		t.Errorf("got clock %d, want none", got)
	}
}
