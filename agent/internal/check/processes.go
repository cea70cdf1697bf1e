package check

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/process"
)

// pid is this process as the machine's /proc numbers it, which may be another one's than ours.
func (m *machine) pid() int {
	if name, err := os.Readlink(m.path("proc/self")); err == nil {
		if pid, err := strconv.Atoi(name); err == nil {
			return pid
		}
	}
	return os.Getpid()
}

// processes follows this process as it would follow a job, and tries to read what those of other users read.
func (m *machine) processes(context.Context) []Finding {
	own, err := m.followSelf()
	f := Finding{Area: Processes, What: "processes", State: Seen, Details: map[string]any{"own_io": own.HasIO}}
	if err != nil && own.ID == "" {
		f.State = Missing
		f.Says = fmt.Sprintf("No process can be followed (%s): a job's CPU time and bytes are not known.", reason(err))
		f.Fix = m.procFix()
		return []Finding{f}
	}
	told, kept := m.others()
	hidden, isHidden := m.hidden()
	f.Details["others_told"], f.Details["others_kept"] = told, kept
	switch {
	case !own.HasIO:
		f.State = Limited
		f.Says = fmt.Sprintf("CPU time is told for each process, and what it reads and writes is not: %v.", err)
		if m.configured("CONFIG_TASK_IO_ACCOUNTING") == "" {
			f.Fix = "boot a kernel that was built with CONFIG_TASK_IO_ACCOUNTING=y"
		}
	case kept > told:
		f.State = Limited
		f.Says = "CPU time is told for each process; what it reads and writes for your own alone, which is enough for run."
		f.Fix = "sudo setcap cap_sys_ptrace,cap_dac_read_search+ep " + m.program()
	case isHidden:
		f.Says = "CPU time, and what is read and written, is told for each process that this user sees."
	case told == 0:
		f.Says = "CPU time, and what is read and written, is told for each process; there are none of other users here."
	default:
		f.Says = "CPU time, and what is read and written, is told for each process, other users' too."
	}
	found := []Finding{f}
	if isHidden {
		found = append(found, hidden)
	}
	if id := strconv.Itoa(m.pid()); !exists(m.path("proc/" + id + "/task/" + id + "/children")) {
		found = append(found, Finding{Area: Processes, What: "children", State: Limited,
			Says: "The kernel does not list a process's children: a job's new processes are found by asking every process for its parent, which takes longer.",
			Fix:  "boot a kernel that was built with CONFIG_PROC_CHILDREN=y"})
	}
	return found
}

// followSelf gives the reading of a job that is this process. Its ID is empty where it cannot be followed.
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

// mostOthers bounds how many processes of other users are tried.
const mostOthers = 64

// others counts the processes of other users whose bytes are told, and those that keep them.
func (m *machine) others() (told, kept int) {
	dir, err := os.Open(m.path("proc"))
	if err != nil {
		return 0, 0
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(1 << 16) // what was listed before an error is enough
	slices.Sort(names)
	for _, name := range names {
		if told+kept >= mostOthers {
			break
		}
		folder := m.path(filepath.Join("proc", name))
		if _, err := strconv.Atoi(name); err != nil || !othersOwn(folder) {
			continue
		}
		text, err := readStart(filepath.Join(folder, "io"))
		switch {
		case err == nil && strings.Contains(text, "read_bytes"):
			told++
		case os.IsPermission(err):
			kept++
		}
	}
	return told, kept
}

func (m *machine) program() string {
	if m.Program == "" {
		return "stallspan"
	}
	return m.Program
}
