package events

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Storms notices when several slow windows read from one disk at once: an I/O storm. The zero value is ready. It is not safe
// for concurrent use.
type Storms struct {
	disks map[string]*storm
}

// storm is the newest one of a disk.
type storm struct {
	until   time.Duration // the end of the last slow window in it
	began   time.Time     // as was told
	windows int           // as was told; 0 where nobody was told of it, or has been told that it is over
}

// mostStorms bounds Storms.disks. No machine has more disks.
const mostStorms = 1024

// Look is told that a slow window that lasted until a moment read from a disk while another one did, which it first did at
// from. It says whether a storm began. One goes on for as long as less than stormOver lies between the ends of such windows.
// A window that ends later, but was at work during the storm, adds nothing to it and begins no other. Nothing else decides,
// and not whether Over was called: a replay tells the same storms.
func (s *Storms) Look(disk string, from, until time.Duration) (began bool) {
	last := s.disks[disk]
	switch {
	case last == nil:
		if !s.room(until) {
			return false
		}
	case until < last.until+stormOver:
		last.until = max(last.until, until)
		return false
	case from < last.until:
		return false
	}
	s.disks[disk] = &storm{until: until}
	return true
}

// room says whether there is room for one more disk; storms that are over make some.
func (s *Storms) room(now time.Duration) bool {
	if s.disks == nil {
		s.disks = map[string]*storm{}
	}
	if len(s.disks) >= mostStorms {
		for disk, one := range s.disks {
			if now >= one.until+stormOver {
				delete(s.disks, disk)
			}
		}
	}
	return len(s.disks) < mostStorms
}

// Tell says of the storm that has begun on a disk that it was told of, with so many windows and when it began: Over will
// say that it is over.
func (s *Storms) Tell(disk string, windows int, began time.Time) {
	if one := s.disks[disk]; one != nil {
		one.windows, one.began = windows, began
	}
}

// Over tells of the storms that are over at a moment, by disk, each once.
func (s *Storms) Over(now sample.Stamp) (told []Event) {
	for disk, one := range s.disks {
		if one.windows == 0 || now.Mono < one.until+stormOver {
			continue
		}
		told = append(told, Event{
			Kind: IOStorm, Resolved: true, At: now.Wall.Add(one.until - now.Mono), Began: one.began, Disk: disk, Count: uint64(one.windows),
			Says: fmt.Sprintf("for %.0f min no slow windows have read from %s at once", stormOver.Minutes(), disk),
		})
		one.windows = 0
	}
	slices.SortFunc(told, func(a, b Event) int { return cmp.Compare(a.Disk, b.Disk) })
	return told
}
