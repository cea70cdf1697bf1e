package probe

import "github.com/stallspan/stallspan/internal/source/process"

// maxGenerations bounds the ancestors of a process. It also ends cycles, which reused process IDs can form.
const maxGenerations = 64

// inherited returns, by PID, the bytes that ended processes had read before, and that others inherited between two
// scans: the kernel adds the totals of a process to those of the process that waits for it (wait_task_zombie in
// kernel/exit.c). If the parent ended, too, it is assumed to have waited first.
func inherited(before, after readTotals) map[int]uint64 {
	over := map[int]uint64{}
	for pid, total := range before {
		if total.Bytes == 0 || !gone(pid, before, after) {
			continue
		}
		heir := total.Parent
		for range maxGenerations {
			if !gone(heir, before, after) {
				break
			}
			heir = before[heir].Parent
		}
		over[heir] += total.Bytes
	}
	return over
}

// gone reports whether the process with a PID has ended. A new process with the PID has a later start, and mostly fewer
// bytes.
func gone(pid int, before, after readTotals) bool {
	was, known := before[pid]
	is, running := after[pid]
	reused := is.Began != was.Began && is.Began > 0 && was.Began > 0
	return known && (!running || reused || is.Bytes < was.Bytes)
}

// findParents reads the parents of the processes that have read or written something, and drops the kernel threads
// among them. All processes would take twice as long, and most of them read nothing.
func (t readTotals) findParents(root string) {
	for pid, total := range t {
		for ok := total.Bytes+total.Written > 0; ok && total.Began == 0; total, ok = t[pid] {
			of, ok := process.StatOf(root, pid)
			if !ok || of.Start == 0 {
				break
			}
			if of.Kernel {
				delete(t, pid)
				break
			}
			total.Parent, total.Began = of.Parent, of.Start
			t[pid] = total
			pid = total.Parent
		}
	}
}
