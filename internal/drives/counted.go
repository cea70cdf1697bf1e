package drives

import (
	"fmt"
	"math"
	"strings"

	"github.com/stallspan/stallspan/internal/sample"
)

// The counts that rules look at. Backblaze replaces drives by 5, 187, 188, 197 and 198; timeouts that do not grow are
// mostly old troubles of a cable or power supply.
var (
	badSectorsAlone = []sample.DriveQuantity{
		sample.DriveReallocated, sample.DrivePending, sample.DriveOfflineUncorrectable, sample.DriveReportedUncorrectable,
	}
	badSectors = []sample.DriveQuantity{
		sample.DriveReallocated, sample.DrivePending, sample.DriveOfflineUncorrectable, sample.DriveReportedUncorrectable,
		sample.DriveCommandTimeouts,
	}
	mediaErrors = []sample.DriveQuantity{sample.DriveMediaErrors}
	crcErrors   = []sample.DriveQuantity{sample.DriveCRCErrors}
)

// nouns are what is counted: one and several.
var nouns = map[sample.DriveQuantity][2]string{
	sample.DriveReallocated:           {"reallocated sector", "reallocated sectors"},
	sample.DrivePending:               {"unreadable sector that waits for reallocation", "unreadable sectors that wait for reallocation"},
	sample.DriveOfflineUncorrectable:  {"sector that its own scan could not read", "sectors that its own scan could not read"},
	sample.DriveReportedUncorrectable: {"error that could not be corrected", "errors that could not be corrected"},
	sample.DriveCommandTimeouts:       {"command that timed out", "commands that timed out"},
	sample.DriveCRCErrors:             {"checksum error on its link", "checksum errors on its link"},
	sample.DriveMediaErrors:           {"media error", "media errors"},
}

// counted says how many of some things a drive has, and of which how many are new; with growing, only of those that grow,
// and "" where none does.
func (f *facts) counted(quantities []sample.DriveQuantity, growing bool) string {
	var parts []string
	for _, q := range quantities {
		v, told := f.drive.Values.Get(q)
		if !told || v <= 0 {
			continue
		}
		count := int64(min(v, math.MaxInt64/2))
		g := f.record.grown(q, count, f.now)
		if growing && g.by == 0 {
			continue
		}
		parts = append(parts, f.count(q, count, g))
	}
	if len(parts) == 0 {
		return ""
	}
	return "has " + strings.Join(parts, ", and ")
}

// count is one of them in words: "312 reallocated sectors, 40 of them since Monday (6 a day)".
func (f *facts) count(q sample.DriveQuantity, count int64, g growth) string {
	noun := nouns[q]
	if f.drive.Protocol == "SCSI" && q == sample.DriveReallocated {
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
		text += ", all since " + since(g.since, f.now)
	default:
		text += fmt.Sprintf(", %d of them since %s", g.by, since(g.since, f.now))
	}
	if rate := g.perDay(f.now); rate >= 0.95 {
		text += fmt.Sprintf(" (%.0f a day)", rate)
	} else if rate > 0 {
		text += fmt.Sprintf(" (%.0f a week)", math.Max(1, 7*rate))
	}
	return text
}
