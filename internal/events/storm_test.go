package events

import (
	"fmt"
	"testing"
	"time"
)

func TestStorms(t *testing.T) {
	var s Storms
	for i, c := range []struct {
		disk        string
		from, until time.Duration
		began       bool
	}{
		{"sda", 5, 20, true},
		{"sda", 6, 18, false},  // a third window of the same storm
		{"sdb", 6, 18, true},   // another disk
		{"sda", 19, 40, false}, // one that overlaps the last of them
		{"sda", 40, 50, true},  // none was left
		{"sda", 60, 70, true},
		{"sdb", 17, 30, false},
	} {
		if got := s.Look(c.disk, c.from, c.until); got != c.began {
			t.Errorf("%d, %+v: %v", i, c, got)
		}
	}
	for i := range 3 * mostStorms {
		s.Look(fmt.Sprint(i), 0, 1)
	}
	if len(s.until) > mostStorms {
		t.Errorf("%d disks", len(s.until))
	}
}
