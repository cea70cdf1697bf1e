//go:build linux

package pipeline

import "time"

// timeline is the part of a worker's log that is still needed.
type timeline struct {
	now    event   // the current event
	events []event // later events in order
}

// split charges a step's wait from begin to end to the phases of the workers. Time in which some workers were at the
// batch belongs to these in equal parts. Other time before the batch was made belongs to all workers in equal parts.
// The rest is time in which workers were idle. The timelines advance to end.
func split(lines []*timeline, batch int, begin, end, made time.Duration) (read, decode time.Duration) {
	for _, l := range lines {
		l.advance(begin)
	}
	for at := begin; at < end; {
		next := end
		if at < made {
			next = min(next, made)
		}
		for _, l := range lines {
			if len(l.events) > 0 {
				next = min(next, max(l.events[0].at, at))
			}
		}
		if at < made {
			r, d, of := shares(lines, batch)
			read += (next - at) * time.Duration(r) / time.Duration(of)
			decode += (next - at) * time.Duration(d) / time.Duration(of)
		}
		for _, l := range lines {
			l.advance(next)
		}
		at = next
	}
	return read, decode
}

// advance applies the events up to at.
func (l *timeline) advance(at time.Duration) {
	n := 0
	for n < len(l.events) && l.events[n].at <= at {
		l.now = l.events[n]
		n++
	}
	l.events = append(l.events[:0], l.events[n:]...)
}

// shares returns how many of how many workers read and decode: of those at the batch, or of all.
func shares(lines []*timeline, batch int) (read, decode, of int) {
	var all, own [phases]int
	for _, l := range lines {
		all[l.now.phase]++
		if l.now.batch == batch && l.now.phase != idle {
			own[l.now.phase]++
		}
	}
	if of := own[reading] + own[decoding]; of > 0 {
		return own[reading], own[decoding], of
	}
	return all[reading], all[decoding], max(len(lines), 1)
}
