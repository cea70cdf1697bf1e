package events

import (
	"fmt"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// looks are slow windows that ended, in seconds, and whether a storm began.
var looks = []struct {
	disk        string
	from, until int
	began       bool
}{
	{"sda", 5, 20, true},
	{"sda", 6, 18, false},    // a third window of the same storm
	{"sdb", 6, 18, true},     // another disk
	{"sda", 30, 79, false},   // the last ended less than a minute before it
	{"sda", 100, 138, false}, // and again
	{"sdb", 17, 190, false},  // it was at work with one of a storm that is over
	{"sda", 139, 198, true},  // a minute after the last
	{"sda", 300, 310, true},
	{"sdb", 191, 195, true}, // what came late has put nothing off
	{"sda", 290, 400, false},
	{"sda", 310, 401, true},
}

func TestStorms(t *testing.T) {
	for name, ticks := range map[string]bool{"that nobody hears of": false, "whose end is told": true} {
		t.Run(name, func(t *testing.T) {
			var s Storms
			for i, c := range looks {
				if ticks {
					s.Over(second(c.until))
				}
				if got := s.Look(c.disk, second(c.from).Mono, second(c.until).Mono); got != c.began {
					t.Errorf("%d, %+v: %v", i, c, got)
				} else if got {
					s.Tell(c.disk, 2, second(c.from).Wall)
				}
			}
		})
	}
}

// second is a moment after the boot.
func second(n int) sample.Stamp {
	at := time.Duration(n) * time.Second
	return sample.Stamp{Mono: at, Wall: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(at)}
}

// A storm that was told of is over once, a minute after its last window.
func TestStormsEnd(t *testing.T) {
	var s Storms
	for _, disk := range []string{"sdb", "sda", "sdc"} {
		s.Look(disk, 5*time.Second, 20*time.Second)
	}
	s.Tell("sda", 3, second(5).Wall)
	s.Tell("sdb", 2, second(5).Wall)
	s.Look("sdb", 6*time.Second, 40*time.Second)
	if told := s.Over(second(79)); told != nil {
		t.Errorf("%+v", told)
	}
	var told []Event
	for at := 80; at < 200; at++ {
		told = append(told, s.Over(second(at))...)
	}
	if len(told) != 2 {
		t.Fatalf("%+v", told)
	}
	for i, want := range []Event{
		{Disk: "sda", Count: 3, At: second(20).Wall, Says: "for 1 min no slow windows have read from sda at once"},
		{Disk: "sdb", Count: 2, At: second(40).Wall, Says: "for 1 min no slow windows have read from sdb at once"},
	} {
		want.Kind, want.Resolved, want.Began = IOStorm, true, second(5).Wall
		if told[i] != want {
			t.Errorf("%+v, want %+v", told[i], want)
		}
	}
}

// One pair of slow windows a second, for an hour, is one storm.
func TestStormThatGoesOn(t *testing.T) {
	var s Storms
	began, over := 0, 0
	for at := 1; at < 3600; at++ {
		if s.Look("sda", second(at).Mono-time.Second/2, second(at).Mono) {
			began++
			s.Tell("sda", 2, second(at).Wall)
		}
		over += len(s.Over(second(at)))
	}
	over += len(s.Over(second(4000)))
	if began != 1 || over != 1 {
		t.Errorf("%d began, %d were over", began, over)
	}
}

// However many disks there are, what is kept has a bound, and what is over makes room.
func TestStormsAreBounded(t *testing.T) {
	var s Storms
	for i := range 3 * mostStorms {
		s.Look(fmt.Sprint(i), 0, time.Second)
	}
	if len(s.disks) != mostStorms {
		t.Errorf("%d disks", len(s.disks))
	}
	if !s.Look("sda", time.Hour, time.Hour) || len(s.disks) != 1 {
		t.Errorf("%d disks", len(s.disks))
	}
}
