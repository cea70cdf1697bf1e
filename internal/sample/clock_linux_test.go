package sample

import (
	"testing"
	"time"
)

func TestOnMonotonicIsTheClockOfStamps(t *testing.T) {
	const tolerance = 500 * time.Nanosecond
	for range 100 {
		before := Now().Mono
		at := OnMonotonic(monotonic())
		after := Now().Mono
		if at < before-tolerance || at > after+tolerance {
			t.Fatalf("got %v, want it between %v and %v", at, before, after)
		}
		time.Sleep(100 * time.Microsecond)
	}
}
