package alert

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Storms detects I/O storms: several slow windows that read from one disk at the same time. The zero value is ready. It
// is not safe for concurrent use.
type Storms struct {
	disks map[string]*storm
}

// storm is the newest storm of a disk.
type storm struct {
	until   time.Duration // end of its last slow window
	began   time.Time     // as reported
	windows int           // as reported; 0 if the beginning was not reported, or the end was
}

// Observe takes a slow window that ended at until and read from a disk while another slow window did, first at from. It
// reports whether a storm began. A storm goes on while less than stormTimeout lies between the ends of such windows. A
// window that ends after the timeout, but overlaps the storm, neither extends the storm nor begins another. The result
// does not depend on calls of Ended, so a replay finds the same storms.
func (s *Storms) Observe(disk string, from, until time.Duration) (began bool) {
	last := s.disks[disk]
	switch {
	case last == nil:
		if !s.makeRoom(until) {
			return false
		}
	case until < last.until+stormTimeout:
		last.until = max(last.until, until)
		return false
	case from < last.until:
		return false
	}
	s.disks[disk] = &storm{until: until}
	return true
}

// makeRoom reports whether one more disk fits. It removes ended storms if needed.
func (s *Storms) makeRoom(now time.Duration) bool {
	if s.disks == nil {
		s.disks = map[string]*storm{}
	}
	if len(s.disks) >= maxDevices {
		maps.DeleteFunc(s.disks, func(_ string, one *storm) bool { return now >= one.until+stormTimeout })
	}
	return len(s.disks) < maxDevices
}

// Reported records that the beginning of a disk's storm was reported, with its number of windows. Ended will return its
// end.
func (s *Storms) Reported(disk string, windows int, began time.Time) {
	if one := s.disks[disk]; one != nil {
		one.windows, one.began = windows, began
	}
}

// Ended returns an event for each reported storm that has ended, once, sorted by disk.
func (s *Storms) Ended(now sample.Stamp) (events []Event) {
	for disk, one := range s.disks {
		if one.windows == 0 || now.Mono < one.until+stormTimeout {
			continue
		}
		events = append(events, Event{
			Kind: IOStorm, Resolved: true, At: now.Wall.Add(one.until - now.Mono), Began: one.began,
			Disk: disk, Count: uint64(one.windows),
			Message: fmt.Sprintf("the last of the slow windows that read from %s at once ended here; none followed in %.0f min",
				disk, stormTimeout.Minutes()),
		})
		one.windows = 0
	}
	slices.SortFunc(events, func(a, b Event) int { return cmp.Compare(a.Disk, b.Disk) })
	return events
}

// Part is a part of this program that can fail while the rest works: a source, the export.
type Part struct {
	Name  string // "source gpu", "export"
	Error string // one line; "" while the part works
}

// Parts detects failing parts of a program. The zero value is ready. It is not safe for concurrent use.
type Parts struct {
	group  *group[string]
	errors map[string]string
}

// Evaluate returns which parts began to fail and which work again. Call it at least every ten seconds.
func (p *Parts) Evaluate(now sample.Stamp, parts []Part) (events []Event) {
	if p.group == nil {
		p.group, p.errors = newGroup[string](AgentDegraded), map[string]string{}
	}
	for _, part := range parts {
		if part.Error != "" && len(p.errors) < maxDevices {
			p.errors[part.Name] = part.Error
		}
		if t, changed := p.group.evaluate(part.Name, now.Mono, oneIf(part.Error != "")); changed {
			events = append(events, p.event(now, t))
		}
	}
	for _, t := range p.group.endRound(now.Mono) {
		events = append(events, p.event(now, t))
	}
	maps.DeleteFunc(p.errors, func(name, _ string) bool { return !p.group.has(name) })
	return events
}

func (p *Parts) event(now sample.Stamp, t transition[string]) Event {
	e := Event{
		Kind: AgentDegraded, Part: t.key, Reason: p.errors[t.key],
		Message: "stallspan reads or sends less than it should, " + t.key + ": " + p.errors[t.key],
	}
	if t.resolved {
		e.Reason, e.Message = "", t.key+" works again"
	}
	return withTimes(now, t, e)
}
