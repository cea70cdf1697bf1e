package drives

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/smart"
)

// facts are what a drive is judged by.
type facts struct {
	drive  *sample.Drive
	record *Record // nil where nothing is known of earlier times
	now    time.Time
}

// rule is one reason to worry. docs/health.md has the same table, with the evidence.
type rule struct {
	name    string
	status  sample.DriveStatus
	applies func(*facts) string // what was found, without the drive's name; "" where it does not apply
	remedy  string              // "" where nothing has to be done
}

const (
	replaceNow  = "Copy what is on it now, and replace it."
	replaceSoon = "Copy what is on it, and plan to replace it."
	watchIt     = "Keep a copy of what is on it, and watch whether the count grows."
	testAgain   = "Keep a copy of what is on it, and have it test all of itself (smartctl --test=long): if that fails too, replace it."
	checkCable  = "Reseat or replace its cable, and try another port: the drive itself is rarely the cause."
	worn        = "Keep a copy of what is on it, and plan to replace it: it is as old or as much used as its maker reckoned with."
	askMaker    = "Keep a copy of what is on it, and look up what its maker says of that warning."
	nameIt      = "Where a USB bridge or RAID controller is in between, name its type (stallspan health --type): docs/health.md has the types."
	coolIt      = "Give it more air: dust, fans, its place in the case; heat shortens its life, and it slows down to save itself."
)

// rules are in the order in which they count: the first that applies gives the state. Those that give DriveOK are said
// all, so that nobody who sees smartctl's exit code is left to wonder.
var rules = []rule{
	{"self_assessment", sample.DriveFailed, selfAssessment, replaceNow},
	{"nvme_critical", sample.DriveFailed, func(f *facts) string { return f.critical(criticalSpare | criticalReliability | criticalReadOnly) }, replaceNow},
	{"silent", sample.DriveFailed, silentAgain, "Look into the kernel's log for it (dmesg), reseat it and its cable; if that does not help, replace it."},
	{"bad_sectors_growing", sample.DriveFailing, func(f *facts) string { return f.counted(badSectors, true) }, replaceSoon},
	{"media_errors_growing", sample.DriveFailing, func(f *facts) string { return f.counted(mediaErrors, true) }, replaceSoon},
	{"spare_low", sample.DriveFailing, spareLow, replaceSoon},
	{"at_threshold", sample.DriveFailing, atThreshold, replaceSoon},
	{"nvme_warning", sample.DriveDegraded, func(f *facts) string { return f.critical(criticalBackup | criticalPersistent) },
		"Do not let its power fail while data are written, and plan to replace it."},
	{"scsi_warning", sample.DriveDegraded, scsiWarning, askMaker},
	{"too_hot", sample.DriveDegraded, tooHot, coolIt},
	{"worn_out", sample.DriveDegraded, wornOut, "Plan to replace it: it may go on for long, but its maker no longer vouches for what is written to it."},
	{"bad_sectors", sample.DriveDegraded, func(f *facts) string { return f.counted(badSectorsAlone, false) }, watchIt},
	{"media_errors", sample.DriveDegraded, func(f *facts) string { return f.counted(mediaErrors, false) }, watchIt},
	{"crc_errors_growing", sample.DriveDegraded, func(f *facts) string { return f.counted(crcErrors, true) }, checkCable},
	{agedAt, sample.DriveDegraded, aged, worn},
	{selfTest, sample.DriveDegraded, selfTestFailed, testAgain},
	{untold, sample.DriveUnread, toldNothing, nameIt},
	{commandFailed, sample.DriveOK, notAnswered, ""},
	{"was_at_threshold", sample.DriveOK, wasAtThreshold, ""},
	{"error_log", sample.DriveOK, errorLog, ""},
}

// assess gives the drive's state, with a sentence on why, more where there is something beside it, and one on what to do.
func (f *facts) assess() (status sample.DriveStatus, finding, remedy string) {
	for i := range rules {
		r := &rules[i]
		if finding != "" && status != sample.DriveOK && !r.beside() {
			continue
		}
		switch text := r.applies(f); {
		case text == "":
		case finding == "":
			status, finding, remedy = r.status, name(f.drive)+" "+text+".", r.remedy
		default:
			finding += " It also " + text + "."
		}
	}
	return cmp.Or(status, sample.DriveOK), finding, remedy
}

// The bits of an NVMe drive's critical warning (NVM Express Base Specification, log page 02h, byte 0).
const (
	criticalSpare = 1 << iota
	criticalTemperature
	criticalReliability
	criticalReadOnly
	criticalBackup
	criticalPersistent
)

// criticalWords are what the bits mean.
var criticalWords = []string{
	"its spare blocks have fallen below its maker's threshold",
	"its temperature is outside of what it may be",
	"it is no longer reliable, because of media or internal errors",
	"it lets itself be read only",
	"the backup of its volatile memory has failed",
	"its persistent memory can only be read or is unreliable",
}

// critical says which of some bits are set.
func (f *facts) critical(mask int) string {
	bits, told := f.drive.Values.Get(sample.DriveCritical)
	var words []string
	for bit, text := range criticalWords {
		if told && int(bits)&mask&(1<<bit) != 0 {
			words = append(words, text)
		}
	}
	if len(words) == 0 {
		return ""
	}
	return fmt.Sprintf("warns (critical warning 0x%02x): %s", int(bits), strings.Join(words, ", and "))
}

// selfAssessment is of the drive's own word, and of the exit code alone where that is not told. An NVMe drive's is its
// critical warning, whose bits say more where they are known; a SCSI drive's is FAILED where it only warns, too.
func selfAssessment(f *facts) string {
	failed := f.drive.Assessment == sample.DriveFails || f.drive.Exit&smart.ExitFailing != 0
	warning, _ := f.drive.Values.Get(sample.DriveCritical)
	bits := int(warning)
	if !failed || bits&(1<<len(criticalWords)-1) != 0 || f.drive.ASC == ascWarning {
		return ""
	}
	text := "says of itself that it is failing (self-assessment FAILED"
	switch {
	case bits != 0:
		text += fmt.Sprintf(": an unknown critical warning 0x%02x", bits)
	case f.drive.Exception != "":
		text += ": " + f.drive.Exception
	case len(f.drive.AtThreshold) > 0:
		text += ": " + strings.Join(f.drive.AtThreshold, ", ") + " at its maker's threshold"
	}
	text += ")"
	if counts := f.counted(badSectors, false); counts != "" {
		text += " and " + counts
	}
	return text
}

// silentAgain is of a drive that did not answer two times in a row: once may be a long command.
func silentAgain(f *facts) string {
	if !f.drive.Silent || f.record == nil || f.record.Silent < 2 {
		return ""
	}
	return fmt.Sprintf("has not answered %d times in a row: it, its cable or its controller hangs", f.record.Silent)
}

func spareLow(f *facts) string {
	left, told := f.drive.Values.Get(sample.DriveSpare)
	least, known := f.drive.Values.Get(sample.DriveSpareMin)
	if !told || !known || left >= least {
		return ""
	}
	return fmt.Sprintf("has %.0f %% of its spare blocks left; its maker's threshold is %.0f %%", 100*left, 100*least)
}

// atThreshold is of the attributes, and of the exit code alone where they are not told.
func atThreshold(f *facts) string {
	switch {
	case len(f.drive.AtThreshold) > 0:
		return "is at its maker's threshold for " + strings.Join(f.drive.AtThreshold, ", ")
	case f.drive.Exit&smart.ExitAt != 0:
		return "is at its maker's threshold for an attribute that warns of a failure"
	}
	return ""
}

// Temperatures, in degrees Celsius, from which a drive that tells no limit of its own is too hot: most makers allow
// spinning disks 60 and SSDs 70.
const (
	hotRotating = 60
	hotSSD      = 70
)

func tooHot(f *facts) string {
	t, told := f.drive.Values.Get(sample.DriveTemperature)
	at := ""
	if told {
		at = fmt.Sprintf(" (%.0f C)", t)
	}
	if text := f.critical(criticalTemperature); text != "" {
		return text + at
	}
	if f.warnsOfHeat() {
		return "warns that it is too hot: " + f.drive.Exception + at
	}
	limit, own := f.drive.Values.Get(sample.DriveTemperatureLimit)
	whose := "its own limit"
	if !own {
		whose = "what most makers allow"
		limit = hotSSD
		if f.drive.Rotates {
			limit = hotRotating
		}
	}
	switch {
	case told && t >= limit:
		return fmt.Sprintf("is too hot: %.0f C, and %s is %.0f C", t, whose, limit)
	case len(f.drive.HotAt) > 0:
		return "is too hot: it is at its maker's threshold for " + strings.Join(f.drive.HotAt, ", ") + at
	}
	return ""
}

func wornOut(f *facts) string {
	used, told := f.drive.Values.Get(sample.DriveWear)
	if !told || used < 1 {
		return ""
	}
	return fmt.Sprintf("has used up %.0f %% of the writes that it is rated for", 100*used)
}
