package probe

import (
	"cmp"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/stallspan/stallspan/internal/source/kernfile"
	"github.com/stallspan/stallspan/internal/source/process"
)

// maxProcesses bounds the processes. With more of them there is no result.
const maxProcesses = 4096

// readTotals holds the bytes that each process has read from storage since its start, by PID. It leaves out processes
// without permission, and kernel threads: what they read is for processes.
type readTotals map[int]readTotal

// readTotal is of one process. Parent and Began are read for processes with any bytes and for their ancestors.
type readTotal struct {
	Bytes   uint64 // read_bytes of /proc/PID/io, including children that it waited for
	Written uint64 // write_bytes: pages that it made dirty
	Parent  int    // PID; 0 if not known
	Began   uint64 // start in ticks since boot, to distinguish processes with the same PID; 0 if not known
}

// moved returns the totals with what was written among the bytes: both take pages of the page cache.
func (t readTotals) moved() readTotals {
	if t == nil {
		return nil
	}
	moved := make(readTotals, len(t))
	for pid, total := range t {
		total.Bytes += total.Written
		moved[pid] = total
	}
	return moved
}

// scanProcesses reads the totals of all processes of the machine with "/" at root, which takes 12 to 25 us each: it is
// for the two ends of a window, not for a tick. It asks a process.Reader, or reads them itself if that is nil. It
// returns nil if there are too many.
func scanProcesses(root string, reader process.Reader) readTotals {
	proc := filepath.Join("/", root, "proc")
	names, err := kernfile.Names(proc, math.MaxInt)
	if err != nil {
		return nil
	}
	var keys []process.Key
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			keys = append(keys, process.Key{PID: pid})
		}
	}
	if len(keys) > maxProcesses {
		return nil
	}
	if reader == nil {
		reader = process.NewDirect(proc)
	}
	answers := make([]process.Bytes, len(keys))
	if reader.Bytes(keys, answers) != nil {
		return nil
	}
	totals := readTotals{}
	for i, b := range answers {
		if b.Err == 0 {
			totals[keys[i].PID] = readTotal{Bytes: b.Read, Written: b.Write}
		}
	}
	totals.findParents(root)
	return totals
}

// reading is a process and the bytes that it read from storage.
type reading struct {
	PID   int
	Bytes uint64
}

// topReaders returns the n processes that read the largest number of bytes between two scans, or fewer: none that read
// nothing. A process that started in between has its whole total. Bytes of one that ended in between count for the
// process that waited for it, except those from before the first scan.
func topReaders(before, after readTotals, n int) []reading {
	if before == nil {
		return nil
	}
	over := inherited(before, after)
	var all []reading
	for pid, total := range after {
		had := over[pid]
		if !gone(pid, before, after) {
			had += before[pid].Bytes
		}
		if total.Bytes > had {
			all = append(all, reading{pid, total.Bytes - had})
		}
	}
	slices.SortFunc(all, func(a, b reading) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.PID, b.PID))
	})
	return all[:min(n, len(all))]
}

// cgroupOf returns the short name of the cgroup of a process: for a container the first 12 digits of its ID, else the
// last part of the path. "" is the root.
func cgroupOf(root string, pid int) string {
	text, _ := os.ReadFile(filepath.Join("/", root, "proc", strconv.Itoa(pid), "cgroup"))
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "0::"); ok {
			return short(path)
		}
	}
	return ""
}

// Bounds of a name.
const (
	idDigits    = 64
	shortDigits = 12
	longestName = 64
)

func short(path string) string {
	name := strings.TrimPrefix(filepath.Base(path), "/")
	id := strings.TrimSuffix(name, ".scope")
	if at := len(id) - idDigits; at >= 0 && strings.Trim(id[at:], "0123456789abcdef") == "" {
		return id[at : at+shortDigits]
	}
	return strings.ToValidUTF8(name[:min(len(name), longestName)], "?")
}
