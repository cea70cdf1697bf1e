package readers

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// longestLine is how many generations are looked through: enough for any shell's script, and an end where numbers that
// were taken again make a circle.
const longestLine = 64

// handed is what processes were handed by others that ended between two looks, of what those had fetched before: the
// kernel adds a process's totals to those of the one that waits for it (wait_task_zombie in kernel/exit.c). One whose
// parent ended, too, is taken to have been waited for by it first.
func handed(before, after Totals) map[int]uint64 {
	over := map[int]uint64{}
	for pid, total := range before {
		if total.Bytes == 0 || !gone(pid, before, after) {
			continue
		}
		heir := total.Parent
		for range longestLine {
			if !gone(heir, before, after) {
				break
			}
			heir = before[heir].Parent
		}
		over[heir] += total.Bytes
	}
	return over
}

// gone says that the process that had a number before has ended. Of two that had it, the later one began later, and has
// mostly fetched less.
func gone(pid int, before, after Totals) bool {
	was, there := before[pid]
	is, still := after[pid]
	another := is.Began != was.Began && is.Began > 0 && was.Began > 0
	return there && (!still || another || is.Bytes < was.Bytes)
}

// findParents looks up where those came from that fetched something. To look at all would take twice as long, and most
// processes of a machine, the kernel's own, fetch nothing.
func (t Totals) findParents(proc string) {
	for pid, total := range t {
		for there := total.Bytes > 0; there && total.Began == 0; total, there = t[pid] {
			text, err := os.ReadFile(filepath.Join(proc, strconv.Itoa(pid), "stat"))
			if total.Parent, total.Began = origin(text); err != nil || total.Began == 0 {
				break
			}
			t[pid] = total
			pid = total.Parent
		}
	}
}

// origin is a process's parent and when it began: the fields 4 and 22 of /proc/PID/stat. The name in field 2 may hold
// anything, a parenthesis too.
func origin(stat []byte) (parent int, began uint64) {
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return 0, 0
	}
	number, _ := kernfile.ParseUint(fields[1])
	began, _ = kernfile.ParseUint(fields[19])
	return int(min(number, math.MaxInt32)), began
}
