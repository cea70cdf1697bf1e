package sample

import "time"

// diskTimeWrap is where the kernel's times wrap: it prints them as 32-bit numbers of milliseconds. TimeInQueue of
// a disk with 32 operations in flight wraps every 37 hours.
const diskTimeWrap = time.Duration(1<<32) * time.Millisecond

// maxAbsentDisks bounds the devices that are remembered after they disappeared.
const maxAbsentDisks = 1024

// DiskNormalizer makes the counters of disks comparable: it removes the wraps of the 32-bit times and marks restarted
// counters in Disk.Reset. All other code compares Reset and subtracts. Normalized readings pass unchanged, so that a
// recording may be normalized again. The zero value is ready; it is not safe for concurrent use.
type DiskNormalizer struct {
	disks map[string]*diskState
	last  Stamp // of the newest reading
}

type diskState struct {
	newest  Disk             // as it was read, without offset
	offset  [6]time.Duration // what the times lost to wraps
	at      time.Duration    // Stamp.Mono of newest
	restart Stamp            // Disk.Reset
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
			n.disks[d.Name] = &diskState{newest: *d, at: s.At.Mono, restart: d.Reset}
		case !ordered:
			state.correct(d)
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
