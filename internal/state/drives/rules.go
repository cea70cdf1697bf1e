package drives

import (
	"fmt"
	"slices"
	"strings"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/smart"
)

// The bits of an NVMe drive's critical warning (NVM Express Base Specification, log page 02h, byte 0).
const (
	criticalSpare = 1 << iota
	criticalTemperature
	criticalReliability
	criticalReadOnly
	criticalBackup
	criticalPersistent
)

// criticalText has the meaning of each bit.
var criticalText = []string{
	"its spare blocks are below its maker's threshold",
	"its temperature is outside its operating range",
	"its reliability is reduced by media or internal errors",
	"it is read-only",
	"the backup of its volatile memory has failed",
	"its persistent memory is read-only or unreliable",
}

// hasWarning returns the rule that some bits of a mask are set.
func hasWarning(mask int) func(*evidence) string {
	return func(e *evidence) string { return e.criticalWarning(mask) }
}

func (e *evidence) criticalWarning(mask int) string {
	bits, ok := e.drive.Values.Get(sample.DriveCritical)
	var parts []string
	for bit, text := range criticalText {
		if ok && int(bits)&mask&(1<<bit) != 0 {
			parts = append(parts, text)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return fmt.Sprintf("warns (critical warning 0x%02x): %s", int(bits), strings.Join(parts, ", and "))
}

// selfAssessment uses the drive's own assessment, or smartctl's exit code without one. NVMe drives and SCSI drives with
// a warning are left to the rules that know more of it.
func selfAssessment(e *evidence) string {
	failed := e.drive.Assessment == sample.DriveFails || e.drive.Exit&smart.ExitFailing != 0
	warning, _ := e.drive.Values.Get(sample.DriveCritical)
	bits := int(warning)
	if !failed || bits&(1<<len(criticalText)-1) != 0 || e.drive.ASC == ascWarning {
		return ""
	}
	text := "reports that it is failing (self-assessment FAILED"
	switch {
	case bits != 0:
		text += fmt.Sprintf(": unknown critical warning 0x%02x", bits)
	case e.drive.Exception != "":
		text += ": " + e.drive.Exception
	case len(e.drive.AtThreshold) > 0:
		text += ": " + strings.Join(e.drive.AtThreshold, ", ") + " at its maker's threshold"
	}
	text += ")"
	if counts := e.counts(badSectors, false); counts != "" {
		text += " and " + counts
	}
	return text
}

// silentAgain applies from the second round without a response: the first may be a long command.
func silentAgain(e *evidence) string {
	if !e.drive.Silent || e.record == nil || e.record.Silent < 2 {
		return ""
	}
	return fmt.Sprintf("has not responded %d times in a row: the drive, its cable or its controller hangs",
		e.record.Silent)
}

func spareLow(e *evidence) string {
	left, ok := e.drive.Values.Get(sample.DriveSpare)
	threshold, known := e.drive.Values.Get(sample.DriveSpareMin)
	if !ok || !known || left >= threshold {
		return ""
	}
	return fmt.Sprintf("has %.0f %% of its spare blocks left; its maker's threshold is %.0f %%", 100*left, 100*threshold)
}

// atThreshold uses the attributes, or smartctl's exit code without them.
func atThreshold(e *evidence) string {
	switch {
	case len(e.drive.AtThreshold) > 0:
		return "is at its maker's threshold for " + strings.Join(e.drive.AtThreshold, ", ")
	case e.drive.Exit&smart.ExitAt != 0:
		return "is at its maker's threshold for an attribute that warns of a failure"
	}
	return ""
}

// Temperature limits in degrees Celsius for drives that report none: most makers allow 60 for hard disks and 70 for
// SSDs.
const (
	maxTemperatureHDD = 60
	maxTemperatureSSD = 70
)

func tooHot(e *evidence) string {
	t, ok := e.drive.Values.Get(sample.DriveTemperature)
	at := ""
	if ok {
		at = fmt.Sprintf(" (%.0f C)", t)
	}
	if text := e.criticalWarning(criticalTemperature); text != "" {
		return text + at
	}
	if e.isHeatWarning() {
		return "warns that it is too hot: " + e.drive.Exception + at
	}
	limit, own := e.drive.Values.Get(sample.DriveTemperatureLimit)
	source := "its own limit"
	if !own {
		source = "the limit of most makers"
		limit = maxTemperatureSSD
		if e.drive.Rotates {
			limit = maxTemperatureHDD
		}
	}
	switch {
	case ok && t >= limit:
		return fmt.Sprintf("is too hot: %.0f C, and %s is %.0f C", t, source, limit)
	case len(e.drive.HotAt) > 0:
		return "is too hot: it is at its maker's threshold for " + strings.Join(e.drive.HotAt, ", ") + at
	}
	return ""
}

func wornOut(e *evidence) string {
	used, ok := e.drive.Values.Get(sample.DriveWear)
	if !ok || used < 1 {
		return ""
	}
	return fmt.Sprintf("has used %.0f %% of its rated writes", 100*used)
}

// SCSI drives report a warning with this additional sense code, and heat with these qualifiers (SPC-6): specified
// temperature exceeded, high critical and high operating temperature limit exceeded.
const ascWarning = 0x0b

var ascqHeat = []uint8{0x01, 0x0a, 0x0c}

// isHeatWarning reports whether a SCSI drive warns that it is too hot.
func (e *evidence) isHeatWarning() bool {
	return e.drive.ASC == ascWarning && slices.Contains(ascqHeat, e.drive.ASCQ)
}

// scsiWarning applies to SCSI warnings except heat. smartctl reports them as FAILED.
func scsiWarning(e *evidence) string {
	if e.drive.ASC != ascWarning || e.isHeatWarning() {
		return ""
	}
	return "warns: " + e.drive.Exception
}

// aged applies to attributes of use and age, which do not announce a failure.
func aged(e *evidence) string {
	if len(e.drive.AgedAt) == 0 {
		return ""
	}
	return "is at its maker's threshold for " + strings.Join(e.drive.AgedAt, ", ") +
		", which is about use and age, not an expected failure"
}

// selfTestFailed applies to a failed self-test in the log. smartctl leaves out an ATA drive's failed tests that were
// followed by a successful long one.
func selfTestFailed(e *evidence) string {
	switch {
	case e.drive.SelfTest != "":
		return "failed its last self-test (" + e.drive.SelfTest + ")"
	case e.drive.Exit&smart.ExitTests != 0:
		return "has a failed test in its self-test log"
	}
	return ""
}

// nothingReported applies to a drive that reports neither a self-assessment nor any error count: its health is unknown.
func nothingReported(e *evidence) string {
	_, critical := e.drive.Values.Get(sample.DriveCritical)
	switch {
	case e.drive.Assessment != "", e.drive.ASC != 0, critical, reportsCounts(e.drive):
		return ""
	case e.drive.Silent, e.drive.Exit&(smart.ExitFailing|smart.ExitAt) != 0: // other rules apply
		return ""
	}
	text := "did not report its self-assessment and its error counts"
	if e.drive.Exit&smart.ExitCommand != 0 {
		text += ", because a command failed"
	}
	return text + ": its health is unknown"
}

// commandFailed returns what is unknown because a command failed. Behind many bridges and RAID controllers a command
// fails without any loss.
func commandFailed(e *evidence) string {
	if e.drive.Exit&smart.ExitCommand == 0 || nothingReported(e) != "" {
		return ""
	}
	var missing []string
	if e.drive.Assessment == "" {
		missing = append(missing, "its self-assessment")
	}
	if !reportsCounts(e.drive) {
		missing = append(missing, "its error counts")
	}
	if len(missing) == 0 {
		return ""
	}
	return "did not report " + strings.Join(missing, " and ") + ", because a command failed"
}

// reportsCounts reports whether a drive reports any error count.
func reportsCounts(d *sample.Drive) bool {
	return slices.ContainsFunc(trackedCounts[:], func(q sample.DriveQuantity) bool {
		_, ok := d.Values.Get(q)
		return ok
	})
}

// wasAtThreshold applies to attributes that were at their threshold, for example when the drive was hot.
func wasAtThreshold(e *evidence) string {
	names := strings.Join(e.drive.WasAt, ", ")
	switch {
	case names == "" && e.drive.Exit&smart.ExitWasAt == 0:
		return ""
	case names == "":
		names = "an attribute"
	}
	return "was at its maker's threshold for " + names + " in the past"
}

// errorLog applies to a log that is never cleared.
func errorLog(e *evidence) string {
	if e.drive.Exit&smart.ExitErrors == 0 {
		return ""
	}
	return "has logged failed or rejected commands at some time in its life, which is harmless on its own"
}
