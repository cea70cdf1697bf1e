package check

import (
	"os"
	"strings"

	"github.com/stallspan/stallspan/internal/source/mount"
)

// hidden reports what the mount of /proc hides from this user.
func (m *machine) hidden() []Finding {
	text, _ := os.ReadFile(m.path("proc/self/mountinfo"))
	value := hidepid(string(text))
	// A process that may be traced is visible anyway. The first process nearly always belongs to another user.
	if value == "" || exists(m.path("proc/1/stat")) && value != "1" && value != "noaccess" || os.Geteuid() == 0 {
		return nil
	}
	f := Finding{Area: Processes, What: "hidepid", Details: map[string]any{"hidepid": value}}
	return f.as(Limited, asService, "/proc is mounted with hidepid=%s: processes of other users cannot be followed, and "+
		"their windows lack CPU time and bytes.", value)
}

// hidepid is that option of the mount at /proc, "" if nothing is hidden.
func hidepid(mountinfo string) (value string) {
	entries, _ := mount.Entries(strings.NewReader(mountinfo)) // lines that cannot be parsed are left out
	for i := range entries {
		if e := &entries[i]; e.Point == "/proc" && e.Type == "proc" {
			value = e.Option("hidepid") // a later mount covers an earlier one
		}
	}
	if value == "0" || value == "off" {
		return ""
	}
	return value
}
