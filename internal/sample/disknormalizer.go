package sample

import "time"

// diskTimeWrap is where the kernel's times wrap: it prints them as 32-bit numbers of milliseconds. TimeInQueue of
// a disk with 32 operations in flight wraps every 37 hours.
const diskTimeWrap = time.Duration(1<<32) * time.Millisecond

// maxAbsentDisks bounds the devices that are remembered after they disappeared.
const maxAbsentDisks = 1024

// maxInFlight is above what any device holds. The kernel prints a number that fell below zero as a large one.
const maxInFlight = 1 << 24

const (
	manyUntimed  = 1000        // operations without any time, after which the kernel does not count it
	judgedPeriod = time.Second // over which IOTicks are compared with what the operations took
)

// DiskNormalizer makes the counters of disks comparable: it removes the wraps of the 32-bit times, marks restarted
// counters in Disk.Reset, and in Disk.Has those that cannot be true. All other code compares Reset and subtracts.
// Normalized readings pass unchanged, so that a recording may be normalized again. The zero value is ready; it is not
// safe for concurrent use.
type DiskNormalizer struct {
	disks map[string]*diskState
	last  Stamp // of the newest reading
}

type diskState struct {
	newest  Disk             // as it was read, without offset
	offset  [6]time.Duration // what the times lost to wraps
	at      time.Duration    // Stamp.Mono of newest
	restart Stamp            // Disk.Reset

	lacks  Fields           // of Disk.Has
	timed  [timeSums]timing // as Disk.times
	judged Disk             // the reading from which IOTicks are compared
	since  time.Duration    // Stamp.Mono of judged
}

// timing is the last growth of a sum of times.
type timing struct {
	time       time.Duration
	operations uint64
}

// Normalize corrects a reading in place. Readings must be in order; one that is older than the last is corrected
// with the present offsets.
func (n *DiskNormalizer) Normalize(s *Sample) {
	if len(s.Disks) == 0 {
		return
	}
	ordered := s.At.Mono > n.last.Mono || n.disks == nil
	if n.disks == nil {
		n.disks = map[string]*diskState{}
	}
	for i := range s.Disks {
		d := &s.Disks[i]
		state := n.disks[d.Name]
		switch {
		case state == nil:
			state = &diskState{newest: *d, at: s.At.Mono, restart: d.Reset}
			n.disks[d.Name] = state
			state.judge(d, s.At.Mono)
		case !ordered:
			state.correct(d)
			d.Has |= state.lacks
		case state.at == s.At.Mono:
			// A second device with the same name. The two are indistinguishable, so its differences do not count.
			d.Reset = s.At
		default:
			state.advance(d, s.At.Mono, n.last)
		}
	}
	if !ordered {
		return
	}
	n.last = s.At
	if len(n.disks) > maxAbsentDisks+len(s.Disks) {
		for name, state := range n.disks {
			if state.at != s.At.Mono {
				delete(n.disks, name)
			}
		}
	}
}

// advance takes the next reading of a device. before is the previous reading of all disks.
func (s *diskState) advance(d *Disk, at time.Duration, before Stamp) {
	newest := *d
	switch {
	case d.Reset.Mono > s.restart.Mono: // normalized before
		*s = diskState{restart: d.Reset}
	case restarted(&s.newest, d):
		*s = diskState{restart: before}
	default:
		_, was := s.newest.counters()
		_, now := d.counters()
		for i := range now {
			if *now[i] < *was[i] {
				s.offset[i] += diskTimeWrap
			}
		}
	}
	s.newest, s.at = newest, at
	s.correct(d)
	s.judge(d, at)
}

// judge marks what cannot be true of a corrected reading, as of the first one after boot.
func (s *diskState) judge(d *Disk, at time.Duration) {
	if d.InFlight > maxInFlight {
		d.InFlight, d.Has = 0, d.Has|LacksInFlight
	}
	for i, t := range d.times() {
		if last := &s.timed[i]; *t.time != last.time {
			*last = timing{*t.time, t.operations}
			s.lacks &^= t.lacks
		} else if t.operations-last.operations >= manyUntimed {
			s.lacks |= t.lacks
		}
	}
	if at-s.since >= judgedPeriod {
		if delta, ok := d.Since(&s.judged, at-s.since); ok && s.since > 0 {
			s.lacks |= delta.Has & BusyTooLong
		}
		s.judged, s.since = *d, at
	}
	d.Has |= s.lacks
	d.judgeQueue()
	if d.Has&LacksQueue != 0 && d.IOTicks == 0 {
		d.Has |= LacksIOTicks
	}
}

func (s *diskState) correct(d *Disk) {
	_, times := d.counters()
	for i := range times {
		*times[i] += s.offset[i]
	}
	d.Reset = s.restart
}

// restarted reports whether a counter fell. A time that fell from its last quarter to its first only wrapped.
func restarted(before, now *Disk) bool {
	counts, times := before.counters()
	countsNow, timesNow := now.counters()
	for i := range counts {
		if *countsNow[i] < *counts[i] {
			return true
		}
	}
	for i := range times {
		if *timesNow[i] < *times[i] && (*times[i] < diskTimeWrap/4*3 || *timesNow[i] > diskTimeWrap/4) {
			return true
		}
	}
	return false
}
