package process

import (
	"testing"
)

// The children of a process are listed only if the scheduler reports that it began one, or if one may be missing.
func TestChildrenAreListedAfterForks(t *testing.T) {
	for name, c := range map[string]struct {
		report func(*scripted)
		scans  int // until the child is found
		root   int // the process whose child it is
	}{
		"by the process":                      {func(a *scripted) { a.forked = []int{100} }, 1, 100},
		"by a child of it":                    {func(a *scripted) { a.forked = []int{1000} }, 1, 1000},
		"by a process that is unknown":        {func(a *scripted) { a.forked = []int{4711} }, 1, 100},
		"by a thread that is unknown":         {func(a *scripted) { a.forked = []int{0} }, 1, 100},
		"perhaps by one, as events were lost": {func(a *scripted) { a.lost = true }, 1, 100},
		"by none, as the scheduler reports":   {func(*scripted) {}, lookEvery, 100},
		"by none, of another process":         {func(*scripted) {}, lookEvery, 1001},
	} {
		t.Run(name, func(t *testing.T) {
			tree := crowd(t, 2)
			source := New(tree.root)
			t.Cleanup(source.Close)
			activity := &scripted{}
			source.Watch(activity)
			if err := source.Add("job", 100, Options{}); err != nil {
				t.Fatal(err)
			}
			ticks := uint64(0)
			scan := func() {
				t.Helper()
				ticks++
				for pid := range source.procs {
					if pid >= 1000 {
						tree.put(pid, 100, 500000, 'S', counts{cpuTicks: ticks}, counts{})
					}
					activity.ran = append(activity.ran, pid)
				}
				source.jobs[0].begun -= startPeriod
				source.lookNow()
				read(t, source)
			}
			scan()
			scan()
			tree.put(2000, c.root, 600000, 'S', counts{}, counts{})
			if c.root == 100 {
				tree.children(100, 1000, 1001, 2000)
			} else {
				tree.children(c.root, 2000)
			}
			c.report(activity)
			scans := 0
			for source.procs[2000] == nil && scans < 2*lookEvery {
				scan()
				scans++
			}
			if scans > c.scans || c.scans > 1 && scans == 1 {
				t.Errorf("the child was found in scan %d, want %d at most, and the first only if it is that", scans, c.scans)
			}
		})
	}
}
