package drives

import (
	"fmt"
	"math"
	"strings"

	"github.com/stallspan/stallspan/internal/sample"
)

// The counts of the rules. Backblaze replaces drives by attributes 5, 187, 188, 197 and 198. Timeouts that do not grow
// are mostly past problems of a cable or power supply.
var (
	badSectorsWithoutTimeouts = []sample.DriveQuantity{
		sample.DriveReallocated, sample.DrivePending, sample.DriveOfflineUncorrectable, sample.DriveReportedUncorrectable,
	}
	badSectors = []sample.DriveQuantity{
		sample.DriveReallocated, sample.DrivePending, sample.DriveOfflineUncorrectable, sample.DriveReportedUncorrectable,
		sample.DriveCommandTimeouts,
	}
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
