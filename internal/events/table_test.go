package events

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/condition"
)

// Whatever flaps at its threshold for an hour, at any pace, is told at most once a minimum duration.
func TestFlapping(t *testing.T) {
	for kind, limits := range Table {
		if limits.Apart < time.Minute {
			t.Errorf("%s: two events may lie %v apart", kind, limits.Apart)
		}
		if limits.Clear >= limits.Raise {
			t.Errorf("%s begins at %v and is over at %v", kind, limits.Raise, limits.Clear)
		}
		most := int(time.Hour/limits.Apart) + 1
		for half := time.Second; half < 20*time.Minute; half += half/2 + time.Second {
			var s condition.State
			changes := 0
			for at := time.Duration(0); at < time.Hour; at += time.Second {
				value := limits.Raise
				if at/half%2 == 1 {
					value = limits.Clear
				}
				if s.Look(&limits, at, value) != condition.None {
					changes++
				}
			}
			if changes > most {
				t.Errorf("%s, flapping each %v: %d events in an hour, at most %d", kind, half, changes, most)
			}
		}
	}
}
