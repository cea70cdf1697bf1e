package probe

import (
	"bytes"
	"math"
	"strconv"

	"github.com/stallspan/stallspan/internal/source/kernfile"
)

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

// statText bounds a /proc/PID/stat in bytes. It has at most about 1.2 KiB.
const statText = 4 << 10

// findParents reads the parents of the processes that have read or written something, and drops the kernel threads
// among them. All processes would take twice as long, and most of them read nothing.
func (t readTotals) findParents(proc string) {
	var buf [statText]byte
	for pid, total := range t {
		for ok := total.Bytes+total.Written > 0; ok && total.Began == 0; total, ok = t[pid] {
			text, err := kernfile.ReadPiece(proc+"/"+strconv.Itoa(pid)+"/stat", buf[:])
			from := parseOrigin(text)
			if err != nil || from.began == 0 {
				break
			}
			if from.kernel {
				delete(t, pid)
				break
			}
			total.Parent, total.Began = from.parent, from.began
			t[pid] = total
			pid = total.Parent
		}
	}
}

// origin is what /proc/PID/stat says of the origin of a process.
type origin struct {
	parent int
	began  uint64 // in ticks since boot; 0 if not known
	kernel bool   // a kernel thread: it works for others, as the worker of a loop device does
}

// kernelThread is PF_KTHREAD (include/linux/sched.h).
const kernelThread = 0x00200000

// parseOrigin reads fields 4, 9 and 22. The name in field 2 may contain any character, also parentheses.
func parseOrigin(stat []byte) (o origin) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return o
	}
	parent, _ := kernfile.ParseUint(fields[1])
	flags, _ := kernfile.ParseUint(fields[6])
	o.began, _ = kernfile.ParseUint(fields[19])
	o.parent, o.kernel = int(min(parent, math.MaxInt32)), flags&kernelThread != 0
	return o
}
