package drives

import (
	"slices"
	"strings"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/smart"
)

// The rules that tell of something else than a drive's values.
const (
	agedAt        = "aged"
	selfTest      = "self_test"
	untold        = "untold"
	commandFailed = "command_failed"
)

// beside says whether what a rule has found is said too where another rule gives the state.
func (r *rule) beside() bool {
	return slices.Contains([]string{agedAt, selfTest, untold, commandFailed}, r.name)
}

// A SCSI drive that reports a warning of itself does so with this additional sense code, and with these qualifiers where
// it is of heat (SPC-6, additional sense codes): specified temperature exceeded, high critical and high operating
// temperature limit exceeded.
const ascWarning = 0x0b

var ascqHeat = []uint8{0x01, 0x0a, 0x0c}

// warnsOfHeat says whether a SCSI drive reports that it is too hot.
func (f *facts) warnsOfHeat() bool {
	return f.drive.ASC == ascWarning && slices.Contains(ascqHeat, f.drive.ASCQ)
}

// scsiWarning is of all else that a SCSI drive warns of. smartctl calls it FAILED then, which it is not.
func scsiWarning(f *facts) string {
	if f.drive.ASC != ascWarning || f.warnsOfHeat() {
		return ""
	}
	return "warns: " + f.drive.Exception
}

// aged is of attributes that makers have for use and age: none of them says that a failure is near.
func aged(f *facts) string {
	if len(f.drive.AgedAt) == 0 {
		return ""
	}
	return "is at its maker's threshold for " + strings.Join(f.drive.AgedAt, ", ") + ", by which its maker tells use and age, not a failure to come"
}

// selfTestFailed is of the last self-test, or of one of them: the exit code does not tell which. smartctl leaves an ATA
// drive's failed tests out when a long one has succeeded since.
func selfTestFailed(f *facts) string {
	switch {
	case f.drive.SelfTest != "":
		return "failed its last self-test (" + f.drive.SelfTest + ")"
	case f.drive.Exit&smart.ExitTests != 0:
		return "has a failed test in its log of self-tests"
	}
	return ""
}

// toldNothing is of a drive that has told neither what it thinks of itself nor any count: that it is well nobody knows.
func toldNothing(f *facts) string {
	_, critical := f.drive.Values.Get(sample.DriveCritical)
	switch {
	case f.drive.Assessment != "", f.drive.ASC != 0, critical, countsTold(f.drive):
		return ""
	case f.drive.Silent, f.drive.Exit&(smart.ExitFailing|smart.ExitAt) != 0: // other rules say what that means
		return ""
	}
	text := "did not tell its self-assessment and its counts of errors"
	if f.drive.Exit&smart.ExitCommand != 0 {
		text += ", as a command to it failed"
	}
	return text + ": of its health nothing is known"
}

// notAnswered says what is not known because a command failed. One that failed and left nothing out, as behind many
// bridges and RAID controllers, says nothing of the drive.
func notAnswered(f *facts) string {
	if f.drive.Exit&smart.ExitCommand == 0 || toldNothing(f) != "" {
		return ""
	}
	var missing []string
	if f.drive.Assessment == "" {
		missing = append(missing, "its self-assessment")
	}
	if !countsTold(f.drive) {
		missing = append(missing, "its counts of errors")
	}
	if len(missing) == 0 {
		return ""
	}
	return "did not tell " + strings.Join(missing, " and ") + ", as a command to it failed: of that nothing is known"
}

// countsTold says whether a drive has told any count of errors.
func countsTold(d *sample.Drive) bool {
	for _, q := range watched {
		if _, told := d.Values.Get(q); told {
			return true
		}
	}
	return false
}

// wasAtThreshold is of the past, such as of a time when the drive was hot.
func wasAtThreshold(f *facts) string {
	of := strings.Join(f.drive.WasAt, ", ")
	switch {
	case of == "" && f.drive.Exit&smart.ExitWasAt == 0:
		return ""
	case of == "":
		of = "an attribute"
	}
	return "was at its maker's threshold for " + of + " at some time, and is not any more"
}

// errorLog is of what happened at any time in a drive's life, and is never emptied.
func errorLog(f *facts) string {
	if f.drive.Exit&smart.ExitErrors == 0 {
		return ""
	}
	return "has logged commands that it refused or could not carry out at some time in its life: that alone is no reason to worry"
}
