package locate

import (
	"maps"
	"os"
	"slices"
	"strings"
	"time"
)

const (
	scanEvery = time.Second
	scanShare = 50    // the time between two scans is at least so many times what one takes
	mostRead  = 65536 // processes of a scan
	mostNests = 8     // containers within each other
)

// table is what a scan of /proc has seen.
type table struct {
	at, took   time.Duration    // when the scan began, on the Locator's clock, and how long it was
	pids       []int            // of all processes
	containers map[string][]int // their members, in ascending order, by ID
	ids        []string         // sorted
	numbers    numbers
}

// fresh is the last scan, or a new one when it is time for it. Callers at the same time share one.
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
	l.rest(t, t.took)
	return t
}

func (l *Locator) due() bool { return time.Since(l.began) >= time.Duration(l.scanFrom.Load()) }

// rest puts the next scan off, by what t has cost.
func (l *Locator) rest(t *table, took time.Duration) {
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
	buf := make([]byte, mostBytes)
	for _, pid := range t.pids {
		nests := 0
		eachContainer(read(proc, pid, "cgroup", buf), own, func(m membership) bool {
			members := t.containers[string(m.id)]
			if len(members) == 0 || members[len(members)-1] != pid { // else by another hierarchy
				t.containers[string(m.id)] = append(members, pid)
				nests++
			}
			return nests < mostNests
		})
	}
	t.ids = slices.Sorted(maps.Keys(t.containers))
}

// processes lists /proc in ascending order.
func processes(proc string) []int {
	folder, err := os.Open(proc)
	if err != nil {
		return nil
	}
	defer func() { _ = folder.Close() }()
	names, _ := folder.Readdirnames(mostRead) // what came before an error is good
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid := number([]byte(name)); pid > 0 {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

// members are the processes of a container, given by its ID or the beginning of it; none when two begin so.
func (t *table) members(id string) (whole string, pids []int) {
	i, _ := slices.BinarySearch(t.ids, id)
	if i == len(t.ids) || !strings.HasPrefix(t.ids[i], id) ||
		i+1 < len(t.ids) && strings.HasPrefix(t.ids[i+1], id) {
		return "", nil
	}
	return t.ids[i], t.containers[t.ids[i]]
}
