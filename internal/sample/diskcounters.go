package sample

import "time"

// DiskTimeWrap is where the times of a Disk begin again: the kernel prints them as 32-bit milliseconds. The weighted time of
// a disk with a queue of 32 gets there in a day and a half.
const DiskTimeWrap = time.Duration(1<<32) * time.Millisecond

// DiskTime is how much a time of a Disk grew. Less than before means that it has wrapped once.
func DiskTime(before, now time.Duration) time.Duration {
	if now < before {
		return now - before + DiskTimeWrap
	}
	return now - before
}

// RestartedSince says that a device's counters began again: it was pulled out and put back, or another took its name. A time
// that falls from its last quarter into its first has only wrapped.
func (d *Disk) RestartedSince(a *Disk) bool {
	counts := [...][2]uint64{
		{a.Reads, d.Reads}, {a.ReadsMerged, d.ReadsMerged}, {a.ReadBytes, d.ReadBytes},
		{a.Writes, d.Writes}, {a.WritesMerged, d.WritesMerged}, {a.WriteBytes, d.WriteBytes},
		{a.Discards, d.Discards}, {a.DiscardBytes, d.DiscardBytes}, {a.Flushes, d.Flushes},
	}
	for _, c := range counts {
		if c[1] < c[0] {
			return true
		}
	}
	times := [...][2]time.Duration{
		{a.ReadTime, d.ReadTime}, {a.WriteTime, d.WriteTime}, {a.BusyTime, d.BusyTime},
		{a.WeightedTime, d.WeightedTime}, {a.DiscardTime, d.DiscardTime}, {a.FlushTime, d.FlushTime},
	}
	for _, t := range times {
		if t[1] < t[0] && (t[0] < DiskTimeWrap/4*3 || t[1] > DiskTimeWrap/4) {
			return true
		}
	}
	return false
}
