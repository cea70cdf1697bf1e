package drives

import (
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Bounds of the history.
const (
	MaxDays   = 60  // of a drive's counts
	MaxDrives = 256 // above it, the drive that was last seen the longest ago is dropped

	recent          = 7 * 24 * time.Hour // the period of growth, and of vanished drives
	maxCountsPerDay = 2                  // the first and the latest
)

// trackedCounts are the error counts whose growth is tracked. Their order is the order in the file: add new ones at the
// end.
var trackedCounts = [...]sample.DriveQuantity{
	sample.DriveReallocated, sample.DrivePending, sample.DriveOfflineUncorrectable, sample.DriveReportedUncorrectable,
	sample.DriveCommandTimeouts, sample.DriveCRCErrors, sample.DriveMediaErrors,
}

// Record is the history of one drive.
type Record struct {
	Drive  sample.Drive `json:"drive"`            // the last reading, without a status
	First  time.Time    `json:"first"`            // first seen
	Seen   time.Time    `json:"seen"`             // last listed by the machine
	Boot   string       `json:"boot,omitempty"`   // boot ID of Seen
	Silent int          `json:"silent,omitempty"` // consecutive rounds without a response in time
	Off    bool         `json:"off,omitempty"`    // switched off in the config since the last reading
	Gone   bool         `json:"gone,omitempty"`   // vanished since Seen
	Shared string       `json:"shared,omitempty"` // the identifier, if other drives have it, too
	Counts []Counts     `json:"counts"`           // the newest last
}

// Counts are the tracked counts of a drive at a time, in the order of trackedCounts; -1 for a count not reported.
type Counts struct {
	At    time.Time `json:"at"`
	Count []int64   `json:"count"`
}

// get returns one of the counts.
func (c *Counts) get(q sample.DriveQuantity) (count int64, ok bool) {
	i := slices.Index(trackedCounts[:], q)
	if i < 0 || i >= len(c.Count) || c.Count[i] < 0 {
		return 0, false
	}
	return c.Count[i], true
}

func countsOf(d *sample.Drive, at time.Time) Counts {
	c := Counts{At: at.UTC().Truncate(time.Second), Count: make([]int64, len(trackedCounts))}
	for i, q := range trackedCounts {
		c.Count[i] = -1
		if v, ok := d.Values.Get(q); ok && v >= 0 && v < 1<<53 {
			c.Count[i] = int64(v)
		}
	}
	return c
}

// update stores a successful reading. The record keeps its own id of the drive.
func (r *Record) update(d *sample.Drive, at time.Time) {
	id := r.Drive.ID
	r.Drive = *d
	r.Drive.ID = id
	r.Drive.Status, r.Drive.Finding, r.Drive.Remedy, r.Drive.Err = "", "", "", ""
	r.Silent = 0
	now := countsOf(d, at)
	n := len(r.Counts)
	switch {
	case n > 0 && now.At.Before(r.Counts[n-1].At):
		return // the clock was set back
	case n >= maxCountsPerDay && day(r.Counts[n-1].At) == day(now.At) &&
		day(r.Counts[n-maxCountsPerDay].At) == day(now.At):
		r.Counts[n-1] = now
	default:
		r.Counts = append(r.Counts, now)
	}
	oldest := now.At.Add(-MaxDays * 24 * time.Hour)
	r.Counts = slices.DeleteFunc(r.Counts, func(c Counts) bool { return c.At.Before(oldest) })
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// growth is the increase of a count within recent.
type growth struct {
	by    int64
	since time.Time // last time that the count had its old value
}

// growth returns the growth of a count up to now. It starts at the lowest recent count, because counts of sectors may
// decrease.
func (r *Record) growth(q sample.DriveQuantity, now int64, at time.Time) growth {
	if r == nil {
		return growth{}
	}
	from := 0 // the newest that is older than recent, or the first
	for i := range r.Counts {
		if r.Counts[i].At.Before(at.Add(-recent)) {
			from = i
		}
	}
	lowest, known := int64(0), false
	var since time.Time
	for i := from; i < len(r.Counts); i++ {
		count, ok := r.Counts[i].get(q)
		if ok && (!known || count <= lowest) && !r.Counts[i].At.After(at) {
			lowest, known = count, true
			since = r.Counts[i].At
		}
	}
	if !known || now <= lowest {
		return growth{}
	}
	return growth{now - lowest, since}
}

// perDay returns the rate of growth a day, or 0 if less than a day has passed.
func (g growth) perDay(at time.Time) float64 {
	if d := at.Sub(g.since); d >= 24*time.Hour {
		return float64(g.by) / (d.Hours() / 24)
	}
	return 0
}

// formatSince formats a time as a clock time, a weekday or a date, depending on its age.
func formatSince(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	switch days := now.Sub(t).Hours() / 24; {
	case t.Format(time.DateOnly) == now.Format(time.DateOnly):
		return t.Format("15:04")
	case days < 6.5:
		return t.Format("Monday")
	}
	return t.Format(time.DateOnly)
}
