package perfetto

import (
	"cmp"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/window"
)

// maxLanes bounds the slices that cross each other at one time.
const maxLanes = 64

// slice is an interval with a name.
type slice struct {
	start, end     time.Duration
	name, category string
	notes          []note
}

// windowLanes draws windows and stalls. Slices of one track contain each other or do not touch; what crosses another
// one gets the next track of the same name.
type windowLanes struct {
	tracks  *tracks
	dropped int
}

func (w *windowLanes) write(whole *window.Report, windows []*window.Report) {
	var all, stalls []slice
	if whole != nil && !slices.Contains(windows, whole) {
		all = append(all, windowSlice(whole))
	}
	for _, r := range windows {
		all = append(all, windowSlice(r))
		stalls = append(stalls, stallSlices(r)...)
	}
	w.draw("Windows", rankWindows, all)
	w.draw("Storage stalls", rankStalls, stalls)
}

func windowSlice(r *window.Report) slice {
	notes := []note{
		{"verdict", string(r.Verdict)}, {"slow", r.Slow}, {"finding", explain.Finding(r)}, {"remedy", explain.Remedy(r)},
		{"run", r.Run}, {"job", r.Job}, {"id", r.ID},
	}
	if r.Split {
		notes = append(notes, note{"busy_s", r.Busy.Seconds()}, note{"storage_s", r.Storage.Seconds()},
			note{"cpu_s", r.CPU.Seconds()}, note{"other_s", r.Other.Seconds()})
	}
	notes = slices.DeleteFunc(notes, func(n note) bool { return n.value == "" })
	name := explain.Label(r.Label(), r.Unfinished)
	if r.Verdict != "" {
		name += ": " + explain.Verdict(r.Verdict, r.Slow)
	}
	return slice{r.Start.Mono, r.End.Mono, name, string(r.Verdict), notes}
}

func stallSlices(r *window.Report) (all []slice) {
	name := "storage stall"
	if r.SlowDevice != nil {
		name += " " + r.SlowDevice.Name
	}
	for _, s := range r.Stalls {
		all = append(all, slice{s.Start, s.End, name, "stall", []note{
			{"waited_s", s.Waited().Seconds()}, {"window", r.Label()},
		}})
	}
	return all
}

// draw writes slices on as few tracks as they need.
func (w *windowLanes) draw(name string, r rank, all []slice) {
	slices.SortStableFunc(all, func(a, b slice) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	var lanes []*lane
	for i := range all {
		s := &all[i]
		j := slices.IndexFunc(lanes, func(l *lane) bool { return l.fits(s) })
		if j < 0 && len(lanes) >= maxLanes {
			w.dropped++
			continue
		}
		if j < 0 {
			j = len(lanes)
			lanes = append(lanes, &lane{id: w.tracks.lane(name, r), out: w.tracks.out})
		}
		lanes[j].add(s)
	}
	for _, l := range lanes {
		l.close(1<<63 - 1)
	}
}

// lane is a track with the slices that are open on it, the innermost last.
type lane struct {
	id   uint64
	out  *encoder
	open []time.Duration // their ends
}

// fits reports whether a slice that begins last of all lies within the others, or after them.
func (l *lane) fits(s *slice) bool {
	for i := len(l.open) - 1; i >= 0; i-- {
		if l.open[i] > s.start {
			return s.end <= l.open[i]
		}
	}
	return true
}

func (l *lane) add(s *slice) {
	l.close(s.start)
	l.out.start(l.id, s.start, s.name, s.category, s.notes)
	l.open = append(l.open, max(s.start, s.end))
}

// close ends the slices that are over at a moment.
func (l *lane) close(at time.Duration) {
	for n := len(l.open); n > 0 && l.open[n-1] <= at; n = len(l.open) {
		l.out.end(l.id, l.open[n-1])
		l.open = l.open[:n-1]
	}
}
