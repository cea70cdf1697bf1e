package readers

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// maxGenerations bounds the ancestors of a process. It also ends cycles, which reused process IDs can form.
const maxGenerations = 64

// inherited returns, by PID, the bytes that ended processes had read before, and that others inherited between two
// scans: the kernel adds the totals of a process to those of the process that waits for it (wait_task_zombie in
// kernel/exit.c). If the parent ended, too, it is assumed to have waited first.
func inherited(before, after Totals) map[int]uint64 {
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
func gone(pid int, before, after Totals) bool {
	was, known := before[pid]
	is, running := after[pid]
	reused := is.Began != was.Began && is.Began > 0 && was.Began > 0
	return known && (!running || reused || is.Bytes < was.Bytes)
}

// findParents reads the parents of the processes that have read something. All processes would take twice as long, and
// most of them, such as kernel threads, read nothing.
func (t Totals) findParents(proc string) {
	for pid, total := range t {
		for ok := total.Bytes > 0; ok && total.Began == 0; total, ok = t[pid] {
			text, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "stat"))
			if total.Parent, total.Began = origin(text); err != nil || total.Began == 0 {
				break
			}
			t[pid] = total
			pid = total.Parent
		}
	}
}

// origin returns the parent and the start time of a process: fields 4 and 22 of /proc/PID/stat. The name in field 2 may
// contain any character, also parentheses.
func origin(stat []byte) (parent int, began uint64) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return 0, 0
	}
	number, _ := kernfile.ParseUint(fields[1])
	began, _ = kernfile.ParseUint(fields[19])
	return int(min(number, math.MaxInt32)), began
}
