package drives

import (
	"strings"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/smart"
)

// The rules that tell of something else than a drive's values.
const (
	selfTest      = "self_test"
	commandFailed = "command_failed"
)

// beside says whether what a rule has found is said too where another rule gives the state.
func (r *rule) beside() bool { return r.name == selfTest || r.name == commandFailed }

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

// notAnswered says what is not known because a command failed. One that failed and left nothing out, as behind many
// bridges and RAID controllers, says nothing of the drive.
func notAnswered(f *facts) string {
	if f.drive.Exit&smart.ExitCommand == 0 {
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
