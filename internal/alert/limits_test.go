package alert

import (
	"testing"
	"time"
)

// A value that flaps at its threshold for an hour, at any rate, changes at most once in each minimum interval.
func TestLimits(t *testing.T) {
	for kind, limits := range LimitsOf {
		if limits.MinInterval < time.Minute {
			t.Errorf("%s: got a minimum interval of %v, want at least 1m", kind, limits.MinInterval)
		}
		if limits.Clear >= limits.Raise {
			t.Errorf("%s: got Clear %v, want it below Raise, which is %v", kind, limits.Clear, limits.Raise)
		}
		maxChanges := int(time.Hour/limits.MinInterval) + 1
		for half := time.Second; half < 20*time.Minute; half += half/2 + time.Second {
			var c condition
			changes := 0
			for at := time.Duration(0); at < time.Hour; at += time.Second {
				value := limits.Raise
				if at/half%2 == 1 {
					value = limits.Clear
				}
				if c.evaluate(&limits, at, value) != unchanged {
					changes++
				}
			}
			if changes > maxChanges {
				t.Errorf("%s, flapping every %v: got %d changes in an hour, want at most %d", kind, half, changes, maxChanges)
			}
		}
	}
}
