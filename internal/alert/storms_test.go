package alert

import (
	"fmt"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// slowWindows are slow windows in the order of their ends, in seconds.
var slowWindows = []struct {
	disk        string
	from, until int
	began       bool
}{
	{"sda", 5, 20, true},
	{"sda", 6, 18, false},    // a third window of the same storm
	{"sdb", 6, 18, true},     // another disk
	{"sda", 30, 79, false},   // within a minute of the last end
	{"sda", 100, 138, false}, // and again
	{"sdb", 17, 190, false},  // overlaps a storm that has ended
	{"sda", 139, 198, true},  // a minute after the last
	{"sda", 300, 310, true},
	{"sdb", 191, 195, true}, // the late window has extended nothing
	{"sda", 290, 400, false},
	{"sda", 310, 401, true},
}

func TestStorms(t *testing.T) {
	for name, ended := range map[string]bool{"without Ended": false, "with Ended": true} {
		t.Run(name, func(t *testing.T) {
			var s Storms
			for i, c := range slowWindows {
				if ended {
					s.Ended(second(c.until))
				}
				got := s.Observe(c.disk, second(c.from).Mono, second(c.until).Mono)
				if got != c.began {
					t.Errorf("window %d, %+v: got began %v, want %v", i, c, got, c.began)
				}
				if got {
					s.Reported(c.disk, 2, second(c.from).Wall)
				}
			}
		})
	}
}

// second is a time after boot.
func second(n int) sample.Stamp {
	at := time.Duration(n) * time.Second
	return sample.Stamp{Mono: at, Wall: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).Add(at)}
}

// A reported storm ends once, a minute after its last window.
func TestStormsEnd(t *testing.T) {
	var s Storms
	for _, disk := range []string{"sdb", "sda", "sdc"} {
		s.Observe(disk, 5*time.Second, 20*time.Second)
	}
	s.Reported("sda", 3, second(5).Wall)
	s.Reported("sdb", 2, second(5).Wall)
	s.Observe("sdb", 6*time.Second, 40*time.Second)
	if got := s.Ended(second(79)); got != nil {
		t.Errorf("after 59 s: got %+v, want no event", got)
	}
	var got []Event
	for at := 80; at < 200; at++ {
		got = append(got, s.Ended(second(at))...)
	}
	want := []Event{
		{Disk: "sda", Count: 3, At: second(20).Wall, Message: "the last of the slow windows that read from sda at once ended here; none followed in 1 min"},
		{Disk: "sdb", Count: 2, At: second(40).Wall, Message: "the last of the slow windows that read from sdb at once ended here; none followed in 1 min"},
	}
	if len(got) != len(want) {
		t.Fatalf("got %+v, want %d events", got, len(want))
	}
	for i, want := range want {
		want.Kind, want.Resolved, want.Began = IOStorm, true, second(5).Wall
		if got[i] != want {
			t.Errorf("got %+v, want %+v", got[i], want)
		}
	}
}

// A pair of slow windows every second, for an hour, is one storm.
func TestLongStorm(t *testing.T) {
	var s Storms
	began, ended := 0, 0
	for at := 1; at < 3600; at++ {
		if s.Observe("sda", second(at).Mono-time.Second/2, second(at).Mono) {
			began++
			s.Reported("sda", 2, second(at).Wall)
		}
		ended += len(s.Ended(second(at)))
	}
	ended += len(s.Ended(second(4000)))
	if began != 1 || ended != 1 {
		t.Errorf("got %d beginnings and %d ends, want one each", began, ended)
	}
}

// The number of disks is bounded, and ended storms make room.
func TestStormsAreBounded(t *testing.T) {
	var s Storms
	for i := range 3 * maxDevices {
		s.Observe(fmt.Sprint(i), 0, time.Second)
	}
	if len(s.disks) != maxDevices {
		t.Errorf("got %d disks, want %d", len(s.disks), maxDevices)
	}
	if began := s.Observe("sda", time.Hour, time.Hour); !began || len(s.disks) != 1 {
		t.Errorf("an hour later: got began %v with %d disks, want true with 1", began, len(s.disks))
	}
}
