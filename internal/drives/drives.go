// Package drives judges the health of the machine's drives by what they tell and by how that has grown, and remembers
// what it needs for that in one small file beside the baselines. It is no place for anything that could not be learned
// again: whatever is wrong with the file, it is set aside and the history starts over.
package drives

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Bounds of the history.
const (
	Kept       = 60  // days of a drive's counts
	MostDrives = 256 // the one that was seen longest ago goes

	recent  = 7 * 24 * time.Hour // growth is of these days; a drive that was here within them and is not has vanished
	mostDay = 2                  // counts of one day that are kept: the first and the latest
)

// watched are the counts whose growth is followed. Their order is that of the file: new ones come last.
var watched = [...]sample.DriveQuantity{
	sample.DriveReallocated, sample.DrivePending, sample.DriveOfflineUncorrectable, sample.DriveReportedUncorrectable,
	sample.DriveCommandTimeouts, sample.DriveCRCErrors, sample.DriveMediaErrors,
}

// Record is what is remembered of one drive.
type Record struct {
	Drive  sample.Drive `json:"drive"`            // as it answered last; without a status
	First  time.Time    `json:"first"`            // when it was seen first
	Seen   time.Time    `json:"seen"`             // when the machine listed it last
	Boot   string       `json:"boot,omitempty"`   // in which boot that was
	Silent int          `json:"silent,omitempty"` // rounds in a row in which it did not answer in time
	Off    bool         `json:"off,omitempty"`    // the config has switched it off since it was asked last: it is not missed
	Gone   bool         `json:"gone,omitempty"`   // it has vanished since
	Shared string       `json:"shared,omitempty"` // the identifier that it has, but others too
	Counts []Counts     `json:"counts"`           // the newest last
}

// Counts is what a drive's watched counts were at a moment, in the order of watched; -1 is for what was not told.
type Counts struct {
	At    time.Time `json:"at"`
	Count []int64   `json:"count"`
}

// of is a count at that moment.
func (c *Counts) of(q sample.DriveQuantity) (count int64, told bool) {
	i := slices.Index(watched[:], q)
	if i < 0 || i >= len(c.Count) || c.Count[i] < 0 {
		return 0, false
	}
	return c.Count[i], true
}

func countsOf(d *sample.Drive, at time.Time) Counts {
	c := Counts{At: at.UTC().Truncate(time.Second), Count: make([]int64, len(watched))}
	for i, q := range watched {
		c.Count[i] = -1
		if v, told := d.Values.Get(q); told && v >= 0 && v < 1<<53 {
			c.Count[i] = int64(v)
		}
	}
	return c
}

// learn takes over what a drive has answered.
func (r *Record) learn(d *sample.Drive, at time.Time) {
	id := r.Drive.ID
	r.Drive = *d
	r.Drive.ID = id
	r.Drive.Status, r.Drive.Finding, r.Drive.Remedy, r.Drive.Err = "", "", "", ""
	r.Silent = 0
	now := countsOf(d, at)
	n := len(r.Counts)
	switch {
	case n > 0 && now.At.Before(r.Counts[n-1].At):
		return // the clock was set back: what is known stays
	case n >= mostDay && day(r.Counts[n-1].At) == day(now.At) && day(r.Counts[n-mostDay].At) == day(now.At):
		r.Counts[n-1] = now
	default:
		r.Counts = append(r.Counts, now)
	}
	oldest := now.At.Add(-Kept * 24 * time.Hour)
	r.Counts = slices.DeleteFunc(r.Counts, func(c Counts) bool { return c.At.Before(oldest) })
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// growth is how much a count has grown within the last days.
type growth struct {
	by    int64
	since time.Time // when it was last seen at what it was before
}

// grown is the growth of a count up to now. It is of the lowest that was seen, as counts of sectors may fall again.
func (r *Record) grown(q sample.DriveQuantity, now int64, at time.Time) growth {
	if r == nil {
		return growth{}
	}
	from := 0 // the newest that is older than recent, or the first
	for i := range r.Counts {
		if r.Counts[i].At.Before(at.Add(-recent)) {
			from = i
		}
	}
	g := growth{}
	least, known := int64(0), false
	for i := from; i < len(r.Counts); i++ {
		count, told := r.Counts[i].of(q)
		if told && (!known || count <= least) && !r.Counts[i].At.After(at) {
			least, known = count, true
			g.since = r.Counts[i].At
		}
	}
	if !known || now <= least {
		return growth{}
	}
	g.by = now - least
	return g
}

// perDay is the rate of a growth, a day; 0 where it is too short to tell.
func (g growth) perDay(at time.Time) float64 {
	if d := at.Sub(g.since); d >= 24*time.Hour {
		return float64(g.by) / (d.Hours() / 24)
	}
	return 0
}

// since names a moment as people do.
func since(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	switch days := now.Sub(t).Hours() / 24; {
	case t.Format(time.DateOnly) == now.Format(time.DateOnly):
		return t.Format("15:04")
	case days < 6.5:
		return t.Format("Monday")
	}
	return t.Format(time.DateOnly)
}

// DefaultPath is where the history lies: beside a file of baselines.
func DefaultPath(baselines string) string {
	if baselines == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(baselines), "drives.json")
}

// Boot tells one uptime of the machine from all others; "" where that is not known.
func Boot(root string) string {
	text, _ := os.ReadFile(filepath.Join("/", root, "proc/sys/kernel/random/boot_id"))
	return strings.TrimSpace(string(text[:min(len(text), 64)]))
}

// badness orders states, the worst first.
var badness = []sample.DriveStatus{
	sample.DriveVanished, sample.DriveFailed, sample.DriveFailing, sample.DriveDegraded, sample.DriveUnread, sample.DriveAsleep,
	sample.DriveOK,
}

// Sort puts the worst first, and drives that are equally well in the order of their names.
func Sort(all []sample.Drive) {
	slices.SortStableFunc(all, func(a, b sample.Drive) int {
		return cmp.Or(cmp.Compare(slices.Index(badness, a.Status), slices.Index(badness, b.Status)),
			cmp.Compare(len(a.Device), len(b.Device)), cmp.Compare(a.Device, b.Device), cmp.Compare(a.Type, b.Type))
	})
}

// Bad says whether something must be done about a drive before long: it is failing, has failed or vanished.
func Bad(s sample.DriveStatus) bool {
	return s == sample.DriveVanished || s == sample.DriveFailed || s == sample.DriveFailing
}

// Unread says whether nothing is known of a drive.
func Unread(s sample.DriveStatus) bool { return s == sample.DriveUnread }

// name is what a drive is called in a sentence.
func name(d *sample.Drive) string {
	switch {
	case d.Device == "":
		return cmp.Or(d.Model, "the drive")
	case d.Type != "" && strings.Contains(d.Type, ","):
		return fmt.Sprintf("%s (%s)", d.Device, d.Type)
	}
	return d.Device
}
