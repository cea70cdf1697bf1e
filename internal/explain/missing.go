package explain

import (
	"strings"

	"github.com/stallspan/stallspan/internal/window"
)

// blocking returns what prevents a verdict.
func blocking(r *window.Report) (m window.Missing, ok bool) {
	for _, m := range r.Missing {
		if _, ok := unjudgedRemedies[m.Reason]; ok && (m.Reason != window.GPULost || r.Split && r.GPUTime() > 0) {
			return m, true
		}
	}
	return m, false
}

// unjudged is the finding of a report without a verdict.
func unjudged(r *window.Report, m window.Missing) string {
	who, it := subject(r, r.Shares()), this(r)
	begin := strings.ToUpper(it[:1]) + it[1:]
	switch m.Reason {
	case window.UnknownGPU:
		return "This machine has no readable GPU with the id " + m.Device + ", so " + it + " cannot be divided."
	case window.NoReadings:
		return begin + " is older than the history, or too short for a reading."
	case window.GPULost:
		lost := strings.Join(r.MissingDevices(window.GPULost), ", ")
		return lost + " could not be read for a part of " + it + ". It was seen busy for " + percent(r.Shares().Busy) +
			" of it."
	case window.ReadingGap:
		return who + " of the time. For " + Duration(m.Time.Seconds()) +
			" of it there are no readings: the monitoring process was stopped or got no CPU."
	case window.HiddenReads:
		return who + " of the time. The program's reads are not readable, so its storage stall is not known."
	case window.TooShort:
		return begin + " lasted " + Duration(r.Duration().Seconds()) + ", too short to show what it waited for."
	case window.OpenEnds:
		return begin + " was detected: its start and end are open by " + Duration(m.Time.Seconds()) +
			" together, too much to show what it waited for."
	case window.NotFollowed:
		return begin + " was detected: its program was not followed for the first " + Duration(m.Time.Seconds()) +
			" of it, so what it waited for is not known."
	}
	return ""
}

// this names what a report is about, in the middle of a sentence.
func this(r *window.Report) string {
	switch r.Kind {
	case window.Epoch:
		return "this epoch"
	case window.ModelLoad:
		return "this load"
	case window.Checkpoint:
		return "this checkpoint"
	case window.Steps:
		return "this group of steps"
	}
	return "the watched time"
}

// unjudgedRemedies are the remedies of reports without a verdict.
var unjudgedRemedies = map[window.Reason]string{
	window.UnknownGPU: "Announce it with the ids of this machine's GPUs, or without ids for all GPUs.",
	window.NoReadings: "Announce it when it starts, so that there are readings at both ends.",
	window.GPULost:    "Search the kernel log for Xid and NVRM; stallspan check reports whether the driver answers.",
	window.ReadingGap: "Measure again, without such a gap.",
	window.HiddenReads: "Run the monitoring process as the program's user, or with " +
		"CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH.",
	window.TooShort:    "Measure for longer: CPU time counts in ticks of 10 ms, and a GPU's driver reports late.",
	window.OpenEnds:    "Announce it, so that its start and end are known.",
	window.NotFollowed: "Announce it, or start the program with stallspan run, which follows it from its start.",
}

// caveats lists what the numbers of a finding do not include.
func caveats(r *window.Report) (text string) {
	if r.Lacks(window.ClientGone) {
		text += "; the program that announced it named no process and has ended, so this is about all processes"
	}
	if disks := r.MissingDevices(window.DiskReset); len(disks) > 0 {
		was, its := " was", "its"
		if len(disks) > 1 {
			was, its = " were", "their"
		}
		text = "; " + strings.Join(disks, ", ") + was + " added, removed or reset, so " + its +
			" numbers cover a part of it"
	}
	if lacksPressure(r) && r.Verdict != window.GPUBound {
		text += "; this kernel reports no I/O pressure, so waiting that shows in no disk's queue may be missing"
	}
	return text
}
