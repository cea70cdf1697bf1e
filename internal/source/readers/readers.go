// Package readers finds out which processes of a machine fetched most from storage between two moments. It looks at all of
// them, which takes 12 to 25 us for each: it is for the two ends of a window that somebody asks about, not for a tick.
package readers

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// Most is how many processes are looked at; of a machine with more nothing is told.
const Most = 4096

// Totals is what each process has fetched from storage since it began, by PID. Those whose file is not for us to read are
// not in it.
type Totals map[int]Total

// Total is what one process has fetched. Where it came from is looked up of those that fetched something, and of their
// ancestors.
type Total struct {
	Bytes  uint64 // read_bytes of /proc/PID/io, with those of the children that it waited for
	Parent int    // its parent's PID; 0 where that is not known
	Began  uint64 // when it began, in ticks since the machine did: it tells apart two processes of the same PID; 0: not known
}

// Scan reads the totals of all processes of the machine whose "/" is root. It is nil where there are too many.
func Scan(root string) Totals {
	folder, err := os.Open(filepath.Join("/", root, "proc"))
	if err != nil {
		return nil
	}
	defer func() { _ = folder.Close() }()
	names, err := folder.Readdirnames(-1)
	if err != nil {
		return nil
	}
	totals, processes := Totals{}, 0
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if processes++; processes > Most {
			return nil
		}
		if text, err := os.ReadFile(filepath.Join(folder.Name(), name, "io")); err == nil {
			if n, ok := readBytes(text); ok {
				totals[pid] = Total{Bytes: n}
			}
		}
	}
	totals.findParents(folder.Name())
	return totals
}

func readBytes(text []byte) (uint64, bool) {
	for line := range bytes.Lines(text) {
		if value, ok := bytes.CutPrefix(line, []byte("read_bytes: ")); ok {
			return kernfile.ParseUint(bytes.TrimRight(value, "\n"))
		}
	}
	return 0, false
}

// Reader is a process, and what it fetched from storage.
type Reader struct {
	PID   int
	Bytes uint64
}

// Between gives the processes that fetched most from before to after, n of them at most, those that fetched nothing left
// out. One that began in between has all of its total. What one fetched in between that ended then counts for the process
// that waited for it; what it had fetched before does not.
func Between(before, after Totals, n int) []Reader {
	if before == nil {
		return nil
	}
	over := handed(before, after)
	var all []Reader
	for pid, total := range after {
		had := over[pid]
		if !gone(pid, before, after) {
			had += before[pid].Bytes
		}
		if total.Bytes > had {
			all = append(all, Reader{pid, total.Bytes - had})
		}
	}
	slices.SortFunc(all, func(a, b Reader) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.PID, b.PID)) })
	return all[:min(n, len(all))]
}

// Name is what a process calls itself (/proc/PID/comm, at most 15 bytes); "" where it is gone.
func Name(root string, pid int) string {
	text, _ := os.ReadFile(filepath.Join("/", root, "proc", strconv.Itoa(pid), "comm"))
	return strings.ToValidUTF8(strings.TrimSuffix(string(text), "\n"), "?")
}

// Group is the short name of the cgroup that a process is in: of a container the first 12 digits of its ID, otherwise the
// last part of the cgroup's path. "" is the root.
func Group(root string, pid int) string {
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
