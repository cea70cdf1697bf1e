package cgroup

import (
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// OOM is what the kernel has counted about memory that ran out: in the cgroups of a process, and on the machine.
type OOM struct {
	view    *View
	pid     int
	groups  []memoryGroup // that of the process first, then those above it
	vmstat  string        // file
	machine uint64        // processes that were killed at the start
}

// memoryGroup is a cgroup whose memory is counted. The counts of cgroup v2 include those of the cgroups below it.
type memoryGroup struct {
	path   string // as in /proc/PID/cgroup
	folder string
	start  memoryCounts
}

type memoryCounts struct {
	killed  uint64 // processes, for whatever lack of memory
	reached uint64 // how often the limit of the cgroup left no memory
}

// WatchOOM notes what has been counted so far for a process. It never fails: what cannot be read is not known.
func (v *View) WatchOOM(pid int) *OOM {
	o := &OOM{view: v, pid: pid, vmstat: filepath.Join(v.root, "proc/vmstat")}
	o.machine = valueOf(o.vmstat, "oom_kill")
	o.Moved()
	return o
}

// Moved notes the cgroups of the process again: it may have entered others, as a batch system's step does. What those
// counted before is not its own.
func (o *OOM) Moved() {
	var groups []memoryGroup
	o.view.eachMemory(o.pid, func(g memoryGroup) bool {
		known := slices.IndexFunc(o.groups, func(old memoryGroup) bool { return old.folder == g.folder })
		switch {
		case known == 0 && len(groups) == 0:
			groups = o.groups // it is where it was
			return false
		case known >= 0:
			groups = append(groups, o.groups[known])
		case g.counts(&g.start):
			groups = append(groups, g)
		}
		return true
	})
	if len(groups) > 0 && (len(o.groups) == 0 || groups[0].path != "/") { // v1 shows a zombie at the top
		o.groups = groups
	}
}

// eachMemory calls visit for the cgroups that may limit the memory of a process, each before those above it, until it
// returns false.
func (v *View) eachMemory(pid int, visit func(g memoryGroup) bool) {
	for controllers, group := range eachGroup(v.root, pid) {
		switch {
		case controllers == "":
			group = Join(v.Own(), group)
		case !slices.Contains(strings.Split(controllers, ","), "memory"):
			continue
		}
		folder := v.folder(controllers, group)
		for level := 0; folder != "" && level < maxLevels; level++ {
			if !visit(memoryGroup{path: group, folder: folder}) {
				return
			}
			if group == "/" {
				break
			}
			folder, group = filepath.Dir(folder), path.Dir(group)
		}
	}
}

// eachGroup yields the controllers, "" for cgroup v2, and the path of each cgroup of a process; none if it has ended.
func eachGroup(root string, pid int) iter.Seq2[string, string] {
	text, _ := os.ReadFile(filepath.Join(root, "proc", strconv.Itoa(pid), "cgroup"))
	return func(yield func(controllers, group string) bool) {
		for line := range strings.Lines(string(text)) {
			_, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
			if controllers, group, _ := strings.Cut(rest, ":"); !yield(controllers, group) {
				return
			}
		}
	}
}

// counts reads the present counts; false if the cgroup has none.
func (g *memoryGroup) counts(to *memoryCounts) bool {
	if file := filepath.Join(g.folder, "memory.events"); exists(file) {
		*to = memoryCounts{valueOf(file, "oom_kill"), valueOf(file, "oom")}
		return true
	}
	file := filepath.Join(g.folder, "memory.oom_control")
	if !exists(file) {
		return false
	}
	// failcnt is counted with each attempt above the limit.
	*to = memoryCounts{valueOf(file, "oom_kill"), g.number("memory.failcnt")}
	return true
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// valueOf returns the number of a line such as "oom_kill 1"; 0 without such a line.
func valueOf(file, key string) uint64 {
	text, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " "); name == key {
			n, _ := kernfile.ParseUint([]byte(value))
			return n
		}
	}
	return 0
}

// Why says in words that the kernel has killed a process for lack of memory since the start; "" if it has not.
func (o *OOM) Why() string {
	switch killed, limit := o.Killed(); {
	case !killed:
		return ""
	case limit != "":
		return "out of memory, by the limit of the cgroup " + limit
	}
	return "out of memory, as the machine had none left"
}

// Killed reports whether the kernel has killed a process for lack of memory since the start: one of the cgroup of the
// process, or where cgroups do not count that, any. limit is the cgroup whose limit was the reason; "" if the machine
// had no memory left, or if that is not known.
func (o *OOM) Killed() (killed bool, limit string) {
	if len(o.groups) == 0 {
		return valueOf(o.vmstat, "oom_kill") > o.machine, ""
	}
	for i := range o.groups {
		g := &o.groups[i]
		var now memoryCounts
		if !g.counts(&now) {
			continue // it was removed
		}
		if i == 0 && now.killed <= g.start.killed {
			return false, ""
		}
		killed = killed || now.killed > g.start.killed
		if killed && (now.reached > g.start.reached || g.peaked()) {
			return true, g.path
		}
	}
	return killed, ""
}

// peaked reports whether a cgroup v1 has used all that it may: newer kernels do not count how often it tried to.
func (g *memoryGroup) peaked() bool {
	limit, most := g.number("memory.limit_in_bytes"), g.number("memory.max_usage_in_bytes")
	return limit > 0 && most >= limit
}

// number returns the number in a file; 0 without one, as for "max".
func (g *memoryGroup) number(name string) (n uint64) {
	text, err := os.ReadFile(filepath.Join(g.folder, name))
	if err == nil {
		n, _ = kernfile.ParseUint([]byte(strings.TrimSpace(string(text))))
	}
	return n
}
