package top

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/stallspan/stallspan/internal/window"
)

// branch is a process of a tree.
type branch struct {
	Member
	before string // what is drawn in front of its name
}

// tree returns processes with each one below the one that started it, by their IDs: rows do not swap. One whose parent
// is not in the list is a root.
func tree(list []Member, ascii bool) []branch {
	fork, last, pass, blank := "├─ ", "└─ ", "│  ", "   "
	if ascii {
		fork, last, pass = "|- ", "`- ", "|  "
	}
	list = slices.SortedFunc(slices.Values(list), func(a, b Member) int { return cmp.Compare(a.PID, b.PID) })
	children := map[int][]Member{}
	for _, m := range list {
		parent := m.Parent
		if parent == m.PID || !slices.ContainsFunc(list, func(o Member) bool { return o.PID == parent }) {
			parent = 0
		}
		children[parent] = append(children[parent], m)
	}
	var all []branch
	var add func(pid int, before string, root bool)
	add = func(pid int, before string, root bool) {
		below := children[pid]
		delete(children, pid) // parents are read at different times: in a circle, this ends
		for i, m := range below {
			here, under := fork, pass
			switch {
			case root:
				here, under = "", ""
			case i == len(below)-1:
				here, under = last, blank
			}
			all = append(all, branch{m, before + here})
			add(m.PID, before+under, false)
		}
	}
	add(0, "", true)
	for _, m := range list { // what is left are circles
		if len(children[m.Parent]) > 0 {
			add(m.Parent, "", true)
		}
	}
	return all
}

// drawProcesses shows the processes of the selected job as a tree.
func (v *View) drawProcesses(c *canvas, f *Frame) {
	j := v.selectedJob(c, f)
	if j == nil {
		return
	}
	lines := pageLines{{text: "PROCESSES of " + j.label(), style: heading}}
	all := tree(j.Members, c.ascii)
	switch {
	case j.Ended:
		lines.add(faint, "The job has ended.")
	case len(all) == 0:
		lines.add(faint, "Not read yet.")
	default:
		lines.add(strong, fmt.Sprintf("%8s %7s %10s %8s  %s", "PID", "cores", "read MiB/s", "GPU MiB", "process"))
	}
	for _, b := range all {
		read := "-"
		if j.HasIO {
			read = decimal(b.Read / mib)
		}
		lines.add(normal, fmt.Sprintf("%8d %7s %10s %8s  %s%s", b.PID, decimal(b.CPU), read, f.memoryOf(b.PID), b.before,
			window.ShownName(b.Name)))
	}
	if more := j.Processes - len(all); more > 0 && len(all) > 0 {
		lines.add(faint, plural(more, "that do less"))
	}
	if v.File != "" {
		lines.add(faint, "A recording holds neither names nor parents of processes.")
	}
	v.drawPage(c, lines)
}

// memoryOf is the memory of GPUs that a process holds, in MiB; "-" for none.
func (f *Frame) memoryOf(pid int) string {
	sum, holds := uint64(0), false
	for i := range f.GPUs {
		for _, h := range f.GPUs[i].Processes {
			if h.PID == pid && h.Has {
				sum, holds = sum+h.Memory, true
			}
		}
	}
	if !holds {
		return "-"
	}
	return fmt.Sprintf("%.0f", float64(sum)/mib)
}
