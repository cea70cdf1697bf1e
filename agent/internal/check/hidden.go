package check

import (
	"fmt"
	"os"
	"strings"
)

// hidden reports what the mount of /proc hides from this user.
func (m *machine) hidden() (Finding, bool) {
	text, err := os.ReadFile(m.path("proc/self/mountinfo"))
	if err != nil {
		return Finding{}, false
	}
	value := hidepid(string(text))
	// A process that may be traced is visible anyway. The first process nearly always belongs to another user.
	if value == "" || exists(m.path("proc/1/stat")) && value != "1" && value != "noaccess" || os.Geteuid() == 0 {
		return Finding{}, false
	}
	return Finding{Area: Processes, What: "hidepid", State: Limited, Details: map[string]any{"hidepid": value},
		Message: fmt.Sprintf("/proc is mounted with hidepid=%s: processes of other users cannot be followed, and their "+
			"windows lack CPU time and bytes.", value),
		Fix: asService}, true
}

// hidepid is that option of the mount at /proc, "" if nothing is hidden.
func hidepid(mountinfo string) string {
	value := ""
	for line := range strings.Lines(mountinfo) {
		before, after, found := strings.Cut(strings.TrimSuffix(line, "\n"), " - ")
		fields, rest := strings.Fields(before), strings.Fields(after)
		if !found || len(fields) < 6 || fields[4] != "/proc" || len(rest) < 3 || rest[0] != "proc" {
			continue
		}
		value = "" // a later mount covers an earlier one
		for option := range strings.SplitSeq(rest[2], ",") {
			if v, ok := strings.CutPrefix(option, "hidepid="); ok && v != "0" && v != "off" {
				value = v
			}
		}
	}
	return value
}
