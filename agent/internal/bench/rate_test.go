package bench

import (
	"math"
	"testing"
	"time"
)

// Two outliers in ten parts do not change the rate. A short step, or one with few reads, is counted as a whole.
func TestRate(t *testing.T) {
	const step = time.Second
	var even tally
	for i := range 1000 {
		at := time.Duration(i+1) * time.Millisecond
		if part := i / 100; part == 3 || part == 7 {
			continue // nothing came
		}
		even.took(at, time.Millisecond, step, 10)
	}
	if got := even.rate(step); math.Abs(got-1000) > 10 || even.bytes != 8000 {
		t.Errorf("%v reads a second, %d bytes", got, even.bytes)
	}
	var cut tally
	for i := range 500 {
		cut.took(time.Duration(i+1)*time.Millisecond, time.Millisecond, step, 10)
	}
	if got := cut.rate(step); math.Abs(got-1000) > 1e-6 {
		t.Errorf("cut short: %v", got)
	}
	var few tally
	few.took(3*time.Second, 3*time.Second, step, 10)
	if got := few.rate(step); math.Abs(got-1./3) > 1e-6 {
		t.Errorf("one slow read: %v", got)
	}
	if got := new(tally).rate(step); got != 0 {
		t.Errorf("nothing: %v", got)
	}
}
