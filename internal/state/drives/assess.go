package drives

import (
	"cmp"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

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
	{"nvme_critical", sample.DriveFailed, hasWarning(criticalSpare | criticalReliability | criticalReadOnly), replaceNow, false},
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
