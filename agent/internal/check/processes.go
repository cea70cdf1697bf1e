package check

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/mount"
	"github.com/stallspan/stallspan/internal/source/process"
	"github.com/stallspan/stallspan/internal/source/procfile"
)

// pid returns the id of this process in the machine's /proc, which may belong to another PID namespace.
func (m *machine) pid() int {
	if name, err := os.Readlink(m.path("proc/self")); err == nil {
		if pid, err := strconv.Atoi(name); err == nil {
			return pid
		}
	}
	return os.Getpid()
}

// asService is the only way to give rights to this program that does not give them to all its users.
const asService = "run the agent as a service (stallspan docs agent), whose user may then read all processes and files"

// processes follows this process as a job, and tries to read the I/O counters of other users' processes.
func (m *machine) processes(context.Context) []Finding {
	own, err := m.followSelf()
	f := Finding{Area: Processes, What: "processes", State: Seen, Details: map[string]any{"own_io": own.HasIO}}
	if err != nil && own.ID == "" {
		return f.as(Missing, m.procFix(), "No process can be followed (%s): a job's CPU time and bytes are unknown.",
			reason(err))
	}
	readable, denied, protected := m.others()
	hidden := m.hidden()
	f.Details["others_told"], f.Details["others_kept"], f.Details["own_kept"] = readable, denied, len(protected)
	switch {
	case !own.HasIO:
		f.State = Limited
		f.Message = fmt.Sprintf("CPU time of each process can be read, but not its bytes: %v.", err)
		if m.configured("CONFIG_TASK_IO_ACCOUNTING") == "" {
			f.Fix = "boot a kernel that was built with CONFIG_TASK_IO_ACCOUNTING=y"
		}
	case denied > readable:
		f.State = Limited
		f.Message = "CPU time of each process can be read, but bytes only of your own, which is enough for run."
		f.Fix = asService
	case len(protected) > 0:
		f.Message = fmt.Sprintf("CPU time of each process can be read, and bytes of all but %s: the kernel protects %s.",
			output.Count(len(protected), "process"), list(protected))
	case len(hidden) > 0:
		f.Message = "CPU time and bytes of each process that this user sees can be read."
	case readable == 0:
		f.Message = "CPU time and bytes of each process can be read; other users have none here."
	default:
		f.Message = "CPU time and bytes of each process can be read, also of other users."
	}
	found := append([]Finding{f}, hidden...)
	if id := strconv.Itoa(m.pid()); !exists(m.path("proc/" + id + "/task/" + id + "/children")) {
		found = append(found, Finding{Area: Processes, What: "children", State: Limited,
			Message: "The kernel does not list a process's children: a job's new processes are found by reading every " +
				"process, which takes longer.",
			Fix: "boot a kernel that was built with CONFIG_PROC_CHILDREN=y"})
	}
	return found
}

// followSelf reads a job that is this process. Its ID is empty if it cannot be followed.
func (m *machine) followSelf() (sample.Job, error) {
	source := process.New(m.Root)
	defer source.Close()
	if err := source.Add("check", m.pid(), process.Options{}); err != nil {
		return sample.Job{}, err
	}
	var s sample.Sample
	err := source.Read(&s)
	if len(s.Jobs) == 0 {
		return sample.Job{}, err
	}
	return s.Jobs[0], err
}

// maxOthers bounds how many processes of other users are tried, and how many of our own.
const maxOthers = 64

// others counts the processes of other users whose bytes can be read, and those where that is denied. protected are
// processes of this user where it is denied, such as those with more rights.
func (m *machine) others() (readable, denied int, protected []string) {
	dir, err := os.Open(m.path("proc"))
	if err != nil {
		return 0, 0, nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(1 << 16) // on an error, the names before it are enough
	slices.Sort(names)
	ours := 0
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		folder := m.path(filepath.Join("proc", name))
		own := !othersOwn(folder)
		if own && ours >= maxOthers || !own && readable+denied >= maxOthers {
			continue
		}
		text, err := procfile.Text(m.path("proc"), pid, "io", 4<<10)
		switch {
		case own && os.IsPermission(err):
			protected = append(protected, name)
			ours++
		case own:
			ours++
		case err == nil && bytes.Contains(text, []byte("read_bytes")):
			readable++
		case os.IsPermission(err):
			denied++
		}
	}
	return readable, denied, protected
}

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
