package cgroup

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/disk"
	"github.com/stallspan/stallspan/internal/source/kernfile"
)

const (
	maxLimits     = 64 // of one process
	maxLevels     = 32 // of cgroups above a process
	unlimitedWord = "max"
)

// Limits reads what cgroups allow their processes on each block device: io.max of cgroup v2, which holds for all
// cgroups below, and blkio.throttle of cgroup v1, which holds for the processes of the cgroup alone (throtl_pd_init in
// block/blk-throttle.c). It is safe for concurrent use.
type Limits struct {
	root string
	view *View
}

// NewLimits returns the limits of the machine with "/" at root.
func NewLimits(root string) *Limits {
	root = filepath.Join("/", root)
	return &Limits{root: root, view: NewView(root)}
}

// Of returns the limits that a process is under. It returns none without permission, or if the process has ended.
func (l *Limits) Of(pid int) (limits []sample.Limit) {
	second, _ := l.view.trees.find(l.root)
	for controllers, group := range eachGroup(l.root, pid) {
		switch {
		case !strings.HasPrefix(group, "/"):
		case controllers == "" && second != "":
			limits = append(limits, l.ofSecond(second, Join(l.view.Own(), group))...)
		case slices.Contains(strings.Split(controllers, ","), "blkio"):
			if folder := l.view.folder("blkio", group); folder != "" {
				limits = append(limits, l.throttles(folder, group)...)
			}
		}
	}
	return limits[:min(len(limits), maxLimits)]
}

// ofSecond reads io.max of a cgroup and of those above it.
func (l *Limits) ofSecond(point, group string) (limits []sample.Limit) {
	if path.Clean(group) != group {
		return nil // outside this namespace
	}
	for range maxLevels {
		if text, err := os.ReadFile(filepath.Join(point, group, "io.max")); err == nil {
			limits = append(limits, l.parseMax(string(text), group)...)
		}
		if group == "/" {
			break
		}
		group = path.Dir(group)
	}
	return limits
}

// parseMax parses lines such as "8:16 rbps=2097152 wbps=max riops=max wiops=120".
func (l *Limits) parseMax(text, group string) (limits []sample.Limit) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) < 2 || len(limits) == maxLimits {
			continue
		}
		limit := sample.Limit{Cgroup: group, Control: sample.IOMax}
		for _, field := range fields[1:] {
			key, value, _ := strings.Cut(field, "=")
			if to := limit.Value(keysOfMax[key]); to != nil && value != unlimitedWord {
				*to, _ = kernfile.ParseUint([]byte(value))
			}
		}
		if limit.Device = disk.NameOf(l.root, fields[0]); limit.Device != "" && !limit.Empty() {
			limits = append(limits, limit)
		}
	}
	return limits
}

var keysOfMax = map[string]sample.LimitKind{
	"rbps": sample.ReadBytesLimit, "wbps": sample.WriteBytesLimit, "riops": sample.ReadsLimit, "wiops": sample.WritesLimit,
}

// throttleFiles are the files of cgroup v1, with lines such as "8:16 2097152".
var throttleFiles = [...]struct {
	name string
	kind sample.LimitKind
}{
	{"blkio.throttle.read_bps_device", sample.ReadBytesLimit},
	{"blkio.throttle.write_bps_device", sample.WriteBytesLimit},
	{"blkio.throttle.read_iops_device", sample.ReadsLimit},
	{"blkio.throttle.write_iops_device", sample.WritesLimit},
}

// throttles reads the limits of one cgroup v1, one for each device.
func (l *Limits) throttles(folder, group string) (limits []sample.Limit) {
	for _, file := range throttleFiles {
		text, err := os.ReadFile(filepath.Join(folder, file.name))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			number, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			allowed, ok := kernfile.ParseUint([]byte(value))
			device := disk.NameOf(l.root, number)
			if !ok || allowed == 0 || device == "" || len(limits) == maxLimits {
				continue
			}
			of := sample.Limit{Device: device, Cgroup: group, Control: sample.BlkioThrottle}
			limits = withLimit(limits, of, file.kind, allowed)
		}
	}
	return limits
}

// withLimit adds a value to the limit of its device.
func withLimit(limits []sample.Limit, of sample.Limit, kind sample.LimitKind, allowed uint64) []sample.Limit {
	i := slices.IndexFunc(limits, func(l sample.Limit) bool { return l.Device == of.Device })
	if i < 0 {
		i, limits = len(limits), append(limits, of)
	}
	*limits[i].Value(kind) = allowed
	return limits
}

// unlimited: a limit of cgroup v1 from here on limits nothing. It is the largest number of whole pages by default.
const unlimited = 1 << 62

// Memory returns the memory of the first cgroup of a process, or above it, that limits it, and the folder of that
// cgroup; zero without one.
func (l *Limits) Memory(pid int) (m sample.MemoryLimit, folder string) {
	l.view.eachMemory(pid, func(g memoryGroup) bool {
		if m = l.MemoryIn(g.path, g.folder); m.Limit > 0 {
			folder = g.folder
		}
		return m.Limit == 0
	})
	return m, folder
}

// MemoryIn returns the memory of a cgroup by its folder; zero if the cgroup does not exist, or is not limited.
func (l *Limits) MemoryIn(group, folder string) (m sample.MemoryLimit) {
	g := memoryGroup{path: group, folder: folder}
	if m = g.memory(); folder == "" || m.Limit == 0 {
		return sample.MemoryLimit{}
	}
	m.Cgroup = group
	return m
}

// memory reads the limit of a cgroup, and if it has one what it uses and has read again.
func (g *memoryGroup) memory() (m sample.MemoryLimit) {
	used := "memory.current"
	for _, name := range []string{"memory.max", "memory.high", "memory.limit_in_bytes"} {
		if n := g.number(name); n > 0 && n < unlimited && (m.Limit == 0 || n < m.Limit) {
			m.Limit = n
			if name == "memory.limit_in_bytes" {
				used = "memory.usage_in_bytes"
			}
		}
	}
	if m.Limit == 0 {
		return m
	}
	m.Used = g.number(used)
	stat := filepath.Join(g.folder, "memory.stat")
	for _, key := range []string{"total_workingset_refault_file", "workingset_refault_file", "workingset_refault"} {
		if n := valueOf(stat, key); n > 0 {
			m.Refaulted = n * uint64(os.Getpagesize())
			break
		}
	}
	return m
}
