package locate

import (
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	scanEvery    = time.Second
	scanShare    = 50    // minimum ratio of the time between two scans to the duration of one
	maxProcesses = 65536 // in a scan
	maxNests     = 8     // nested containers of a process
)

// table is the result of a scan of /proc.
type table struct {
	at, took   time.Duration    // start on the Locator's clock, and duration
	pids       []int            // of all processes
	containers map[string][]int // their members, in ascending order, by ID
	ids        []string         // sorted
	numbers    numbers
}

// fresh returns the last scan, or a new one if it is due. Concurrent callers share one.
func (l *Locator) fresh() *table {
	before := l.seen.Load()
	if before != nil && !l.due() {
		return before
	}
	l.scanning.Lock()
	defer l.scanning.Unlock()
	if t := l.seen.Load(); t != nil && (t != before || !l.due()) {
		return t
	}
	at := time.Since(l.began)
	t := scan(l.proc, l.groups.Own())
	t.at, t.took = at, time.Since(l.began)-at
	l.seen.Store(t)
	l.postpone(t, t.took)
	return t
}

func (l *Locator) due() bool { return time.Since(l.began) >= time.Duration(l.scanFrom.Load()) }

// postpone delays the next scan by what t has cost.
func (l *Locator) postpone(t *table, took time.Duration) {
	l.scanFrom.Store(int64(t.at + max(scanEvery, scanShare*took)))
}

// scan reads the cgroups of all processes. own is as for eachContainer.
func scan(proc, own string) *table {
	t := &table{pids: processes(proc)}
	t.readContainers(proc, own)
	return t
}

func (t *table) readContainers(proc, own string) {
	t.containers = make(map[string][]int)
	buf := make([]byte, maxBytes)
	for _, pid := range t.pids {
		nests := 0
		eachContainer(read(proc, pid, "cgroup", buf), own, func(m membership) bool {
			members := t.containers[string(m.id)]
			if len(members) == 0 || members[len(members)-1] != pid { // a process is listed once for each cgroup v1 hierarchy
				t.containers[string(m.id)] = append(members, pid)
				nests++
			}
			return nests < maxNests
		})
	}
	t.ids = slices.Sorted(maps.Keys(t.containers))
}

// processes returns the process IDs of /proc in ascending order.
func processes(proc string) []int {
	folder, err := os.Open(proc)
	if err != nil {
		return nil
	}
	defer func() { _ = folder.Close() }()
	names, _ := folder.Readdirnames(maxProcesses) // names before an error are valid
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid := number([]byte(name)); pid > 0 {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

// members returns the processes of a container by its ID, or by the start of the ID if that is unique.
func (t *table) members(id string) (whole string, pids []int) {
	i, _ := slices.BinarySearch(t.ids, id)
	if i == len(t.ids) || !strings.HasPrefix(t.ids[i], id) ||
		i+1 < len(t.ids) && strings.HasPrefix(t.ids[i+1], id) {
		return "", nil
	}
	return t.ids[i], t.containers[t.ids[i]]
}
