package drives

import (
	"fmt"
	"math"
	"slices"
	"strings"
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

// The counts of the rules. Backblaze replaces drives by attributes 5, 187, 188, 197 and 198. Timeouts that do not grow
// are mostly past problems of a cable or power supply.
var (
	badSectorsWithoutTimeouts = []sample.DriveQuantity{
		sample.DriveReallocated, sample.DrivePending, sample.DriveOfflineUncorrectable, sample.DriveReportedUncorrectable,
	}
	badSectors  = append(badSectorsWithoutTimeouts[:4:4], sample.DriveCommandTimeouts)
	mediaErrors = []sample.DriveQuantity{sample.DriveMediaErrors}
	crcErrors   = []sample.DriveQuantity{sample.DriveCRCErrors}
)

// nouns are what is counted, in the singular and the plural.
var nouns = map[sample.DriveQuantity][2]string{
	sample.DriveReallocated: {"reallocated sector", "reallocated sectors"},
	sample.DrivePending: {
		"unreadable sector pending reallocation", "unreadable sectors pending reallocation",
	},
	sample.DriveOfflineUncorrectable:  {"sector unreadable in its own scan", "sectors unreadable in its own scan"},
	sample.DriveReportedUncorrectable: {"uncorrectable error", "uncorrectable errors"},
	sample.DriveCommandTimeouts:       {"command timeout", "command timeouts"},
	sample.DriveCRCErrors:             {"checksum error on its link", "checksum errors on its link"},
	sample.DriveMediaErrors:           {"media error", "media errors"},
}

func hasCounts(quantities []sample.DriveQuantity) func(*evidence) string {
	return func(e *evidence) string { return e.counts(quantities, false) }
}

func countsGrow(quantities []sample.DriveQuantity) func(*evidence) string {
	return func(e *evidence) string { return e.counts(quantities, true) }
}

// counts returns the counts that are not 0, with their growth. With onlyGrowing it leaves out those that do not grow.
func (e *evidence) counts(quantities []sample.DriveQuantity, onlyGrowing bool) string {
	var parts []string
	for _, q := range quantities {
		v, ok := e.drive.Values.Get(q)
		if !ok || v <= 0 {
			continue
		}
		count := int64(min(v, math.MaxInt64/2))
		g := e.record.growth(q, count, e.now)
		if onlyGrowing && g.by == 0 {
			continue
		}
		parts = append(parts, e.count(q, count, g))
	}
	if len(parts) == 0 {
		return ""
	}
	return "has " + strings.Join(parts, ", and ")
}

// count returns a count in words: "312 reallocated sectors, 40 of them since Monday (6 a day)".
func (e *evidence) count(q sample.DriveQuantity, count int64, g growth) string {
	noun := nouns[q]
	if e.drive.Protocol == "SCSI" && q == sample.DriveReallocated {
		noun = [2]string{"grown defect", "grown defects"}
	}
	word := noun[1]
	if count == 1 {
		word = noun[0]
	}
	text := fmt.Sprintf("%d %s", count, word)
	switch g.by {
	case 0:
		return text
	case count:
		text += ", all since " + formatSince(g.since, e.now)
	default:
		text += fmt.Sprintf(", %d of them since %s", g.by, formatSince(g.since, e.now))
	}
	if rate := g.perDay(e.now); rate >= 0.95 {
		text += fmt.Sprintf(" (%.0f a day)", rate)
	} else if rate > 0 {
		text += fmt.Sprintf(" (%.0f a week)", math.Max(1, 7*rate))
	}
	return text
}
