package drives

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

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

// evidence is what a drive is assessed by.
type evidence struct {
	drive  *sample.Drive
	record *Record // nil without a history
	now    time.Time
}

// rule is a reason for a status. docs/health.md has the same table, with sources.
type rule struct {
	name    string
	status  sample.DriveStatus
	applies func(*evidence) string // the finding without the drive's name, or ""
	remedy  string                 // "" if there is nothing to do
	added   bool                   // its finding is added to that of another rule
}

const (
	replaceNow  = "Back up its data now, and replace it."
	replaceSoon = "Back up its data, and plan to replace it."
	watchCount  = "Back up its data, and watch whether the count grows."
	testAgain   = "Back up its data, and run a full self-test (smartctl --test=long): if it fails, replace the drive."
	checkCable  = "Reseat or replace its cable, and try another port: the drive itself is rarely the cause."
	replaceOld  = "Back up its data, and plan to replace it: it has reached the age or use that it was designed for."
	askMaker    = "Back up its data, and look up the warning in its maker's documentation."
	setType     = "If a USB bridge or RAID controller is in between, set its type (stallspan health --type): " +
		"stallspan docs health lists the types."
	cool = "Improve its cooling: check dust, fans and its place in the case. " +
		"Heat shortens its life and throttles it."
	resetDrive = "Look for it in the kernel log (dmesg), and reseat the drive and its cable; " +
		"if that does not help, replace it."
	keepPower  = "Do not interrupt its power while data is written, and plan to replace it."
	replaceSSD = "Plan to replace it: it may work for long, but its maker no longer guarantees that it keeps written data."
)

// rules are in the order of precedence: the first that applies sets the status. Rules for DriveOK always add their
// finding, because it explains smartctl's exit code.
var rules = []rule{
	{"self_assessment", sample.DriveFailed, selfAssessment, replaceNow, false},
	{"nvme_critical", sample.DriveFailed, hasWarning(criticalSpare | criticalReliability | criticalReadOnly), replaceNow,
		false},
	{"silent", sample.DriveFailed, silentAgain, resetDrive, false},
	{"bad_sectors_growing", sample.DriveFailing, countsGrow(badSectors), replaceSoon, false},
	{"media_errors_growing", sample.DriveFailing, countsGrow(mediaErrors), replaceSoon, false},
	{"spare_low", sample.DriveFailing, spareLow, replaceSoon, false},
	{"at_threshold", sample.DriveFailing, atThreshold, replaceSoon, false},
	{"nvme_warning", sample.DriveDegraded, hasWarning(criticalBackup | criticalPersistent), keepPower, false},
	{"scsi_warning", sample.DriveDegraded, scsiWarning, askMaker, false},
	{"too_hot", sample.DriveDegraded, tooHot, cool, false},
	{"worn_out", sample.DriveDegraded, wornOut, replaceSSD, false},
	{"bad_sectors", sample.DriveDegraded, hasCounts(badSectorsWithoutTimeouts), watchCount, false},
	{"media_errors", sample.DriveDegraded, hasCounts(mediaErrors), watchCount, false},
	{"crc_errors_growing", sample.DriveDegraded, countsGrow(crcErrors), checkCable, false},
	{"aged", sample.DriveDegraded, aged, replaceOld, true},
	{"self_test", sample.DriveDegraded, selfTestFailed, testAgain, true},
	{"untold", sample.DriveUnread, nothingReported, setType, true},
	{"command_failed", sample.DriveOK, commandFailed, "", true},
	{"was_at_threshold", sample.DriveOK, wasAtThreshold, "", false},
	{"error_log", sample.DriveOK, errorLog, "", false},
}

// assess returns the status, the finding and the remedy.
func (e *evidence) assess() (status sample.DriveStatus, finding, remedy string) {
	for i := range rules {
		r := &rules[i]
		if finding != "" && status != sample.DriveOK && !r.added {
			continue
		}
		switch text := r.applies(e); {
		case text == "":
		case finding == "":
			status, finding, remedy = r.status, nameOf(e.drive)+" "+text+".", r.remedy
		default:
			finding += " It also " + text + "."
		}
	}
	return cmp.Or(status, sample.DriveOK), finding, remedy
}

// assessAll sets the status of drives from their records. Vanished drives replace readings that failed because of that.
func assessAll(drives []sample.Drive, found, vanished []*Record, listing *Listing, at time.Time) []sample.Drive {
	all := make([]sample.Drive, 0, len(drives)+len(vanished))
	for i, d := range drives {
		samePlace := func(r *Record) bool { return placeOf(&r.Drive) == placeOf(&d) }
		if isGone(&d, listing) && slices.ContainsFunc(vanished, samePlace) {
			continue
		}
		assess(&d, found[i], at)
		all = append(all, d)
	}
	for _, r := range vanished {
		all = append(all, r.vanishedDrive(at))
	}
	Sort(all)
	return all
}

// assess sets the status of a drive.
func assess(d *sample.Drive, r *Record, at time.Time) {
	e := evidence{d, r, at}
	if r != nil {
		d.ID = r.Drive.ID
	}
	switch d.Status {
	case "":
		d.Status, d.Finding, d.Remedy = e.assess()
	case sample.DriveAsleep:
		assessAsleep(d, r, at)
	case sample.DriveUnread:
		if r != nil {
			d.Model, d.Serial = cmp.Or(d.Model, r.Drive.Model), cmp.Or(d.Serial, r.Drive.Serial)
			d.Protocol = cmp.Or(d.Protocol, r.Drive.Protocol)
		}
		d.Finding = nameOf(d) + " could not be read: " + d.Err + "."
		if d.Silent {
			if status, finding, remedy := e.assess(); status == sample.DriveFailed {
				d.Status, d.Finding, d.Remedy = status, finding, remedy
			}
		}
	}
}

// assessAsleep uses the last reading of a drive that was not woken.
func assessAsleep(d *sample.Drive, r *Record, at time.Time) {
	d.Finding = nameOf(d) + " sleeps, and was not woken."
	if r == nil || r.Drive.At.IsZero() {
		return
	}
	device, kind := d.Device, d.Type
	*d = r.Drive
	d.Device, d.Type, d.Status = device, kind, sample.DriveAsleep
	read := d.At.Local().Format(time.DateTime)
	d.Finding = nameOf(d) + " sleeps, and was not woken: its values are those of " + read + "."
	e := evidence{d, r, at}
	status, finding, remedy := e.assess()
	if finding != "" {
		d.Finding, d.Remedy = finding+" It sleeps: these are values of "+read+".", remedy
	}
	if status != sample.DriveOK {
		d.Status = status
	}
}
