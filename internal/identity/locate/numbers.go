package locate

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"time"
)

// numbers are the process IDs of a scan in their own pid namespaces. Reading them takes longer than the scan, so they
// are read when the first span needs them.
type numbers struct {
	once sync.Once
	all  []numbered // sorted by inner
}

type numbered struct {
	inner int32 // in its own pid namespace
	depth int32 // of that namespace below the one of /proc; 0 if it is the same
	pid   int32
}

// numbered returns the processes with that number in their own namespace.
func (l *Locator) numbered(t *table, inner int) []numbered {
	n := &t.numbers
	n.once.Do(func() {
		began := time.Now()
		n.read(l.proc, t.pids)
		l.postpone(t, t.took+time.Since(began))
	})
	byInner := func(a numbered, inner int32) int { return cmp.Compare(a.inner, inner) }
	from, _ := slices.BinarySearchFunc(n.all, int32(inner), byInner)
	to, _ := slices.BinarySearchFunc(n.all, int32(inner)+1, byInner)
	return n.all[from:to]
}

func (n *numbers) read(proc string, pids []int) {
	n.all = n.all[:0]
	buf := make([]byte, maxBytes)
	for _, pid := range pids {
		if s, ok := parseStatus(read(proc, pid, "status", buf)); ok && s.memory {
			n.all = append(n.all, numbered{int32(s.inner), int32(s.depth), int32(pid)})
		}
	}
	slices.SortFunc(n.all, func(a, b numbered) int { return cmp.Compare(a.inner, b.inner) })
}

// among returns the one of these that is a member; 0 for no member, and for several. A process in a deeper namespace
// is in a container inside the container, and does not count.
func among(members []int, these []numbered) int {
	found, depth := 0, int32(math.MaxInt32)
	for _, n := range these {
		if _, ok := slices.BinarySearch(members, int(n.pid)); !ok || n.depth > depth {
			continue
		}
		if n.depth == depth {
			found = 0
			continue
		}
		found, depth = int(n.pid), n.depth
	}
	return found
}

// nested returns the one of these in a namespace below that of /proc; 0 for no such process (not taken), and for
// several.
func nested(these []numbered) (pid int, taken bool) {
	for _, n := range these {
		switch {
		case n.depth == 0:
		case taken:
			return 0, true
		default:
			pid, taken = int(n.pid), true
		}
	}
	return pid, taken
}
