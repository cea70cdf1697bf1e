package process

import (
	"testing"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/tcp"
)

// scripted is a Scheduler whose answers a test sets.
type scripted struct {
	ran    []int
	forked []int // of them or others
	lost   bool

	moved []string
}

func (s *scripted) EachMoved(_ uint64, mark func(job string)) {
	for _, job := range s.moved {
		mark(job)
	}
	s.moved = nil
}

func (s *scripted) EachConnection(func(*tcp.Change)) (all bool) { return true }

func (s *scripted) EachRan(mark func(pid int, forked bool)) (all bool) {
	for _, pid := range s.ran {
		mark(pid, false)
	}
	for _, pid := range s.forked {
		mark(pid, true)
	}
	s.ran, s.forked = nil, nil
	return !s.lost
}

// readIn returns how many processes a reading takes from files.
func readIn(t *testing.T, source *Source, edge bool) (count int) {
	t.Helper()
	if err := source.Read(&sample.Sample{Edge: edge}); err != nil {
		t.Fatal(err)
	}
	for _, p := range source.procs {
		if p.round == source.round && p.left != source.round {
			count++
		}
	}
	return count
}

// A process that did not run is read once a second, and one that ran is in the next reading.
func TestIdleProcessesAreLeftOut(t *testing.T) {
	tree := crowd(t, 20)
	source := New(tree.root)
	t.Cleanup(source.Close)
	activity := &scripted{}
	source.Watch(activity)
	if err := source.Add("job", 100, Options{}); err != nil {
		t.Fatal(err)
	}
	all := len(source.procs)
	if got := readIn(t, source, false); got != all {
		t.Errorf("processes that the scheduler does not know: got %d read, want all %d", got, all)
	}
	for pid := range source.procs {
		activity.ran = append(activity.ran, pid)
	}
	if got := readIn(t, source, false); got != all {
		t.Errorf("all ran: got %d read, want %d", got, all)
	}
	for range 20 {
		if got := readIn(t, source, true); got != 0 {
			t.Errorf("none ran: got %d read, want none", got)
		}
	}
	source.fullAt -= scanInterval // as after a second
	if got := readIn(t, source, false); got != all {
		t.Errorf("a second later: got %d read, want all %d", got, all)
	}

	tree.put(1003, 100, 500000, 'S', counts{cpuTicks: 700}, counts{})
	before := source.jobs[0].total[cpuTicks]
	activity.ran = []int{1003}
	readIn(t, source, false)
	if got := source.jobs[0].total[cpuTicks] - before; got != 700 {
		t.Errorf("after a process ran: got %d ticks, want 700", got)
	}
	activity.lost = true
	if got := readIn(t, source, false); got != all {
		t.Errorf("after a loss of events: got %d read, want %d", got, all)
	}
}

// A process that has ended runs no more, but its parent inherits its counters when it waits for it, perhaps much later.
// The job counts them once.
func TestEndedProcessThatWaitsForItsParent(t *testing.T) {
	for _, later := range []int{0, 1, 7} { // readings until the parent waits
		tree := tree{t, t.TempDir()}
		own := counts{cpuTicks: 30, faults: 5, readBytes: 1000, readChars: 2000}
		tree.put(100, 1, 5, 'S', counts{}, counts{})
		tree.put(101, 100, 6, 'S', counts{}, counts{})
		tree.children(100, 101)
		tree.children(101)
		source := New(tree.root)
		t.Cleanup(source.Close)
		activity := &scripted{}
		source.Watch(activity)
		if err := source.Add("job", 100, Options{}); err != nil {
			t.Fatal(err)
		}
		chars := func(ran ...int) uint64 {
			activity.ran = ran
			return ordinary(t, source).Jobs[0].ReadChars
		}
		chars(100, 101)
		tree.put(101, 100, 6, 'Z', own, counts{})
		for n := range later + 1 {
			var ran []int
			if n == 0 {
				ran = []int{101}
			}
			if got := chars(ran...); got != own[readChars] {
				t.Fatalf("ended, reading %d: got %d bytes, want %d", n, got, own[readChars])
			}
		}
		tree.end(101)
		tree.put(100, 1, 5, 'S', counts{}, own)
		for n := range 4 {
			source.fullAt -= scanInterval // as after a second
			ran := []int{100}
			if n > 0 {
				ran = nil
			}
			if got := chars(ran...); got != own[readChars] {
				t.Fatalf("%d readings later, waited for, reading %d: got %d bytes, want %d", later, n, got, own[readChars])
			}
		}
		source.Close()
	}
}

// Once the threads of a process are no longer followed for one job, the other one reads it again.
func TestIdleProcessOfAnotherJob(t *testing.T) {
	source := New(crowd(t, 3).root)
	t.Cleanup(source.Close)
	activity := &scripted{}
	source.Watch(activity)
	for _, id := range []string{"first", "second"} {
		if err := source.Add(id, 100, Options{}); err != nil {
			t.Fatal(err)
		}
	}
	for pid := range source.procs {
		activity.ran = append(activity.ran, pid)
	}
	all := readIn(t, source, false)
	source.Remove("first")
	if got := readIn(t, source, false); got != all {
		t.Errorf("got %d read, want %d", got, all)
	}
}

// A job that no window needs is read once a second, as long as the scheduler reports what its threads do. What it did
// meanwhile is in that reading.
func TestRareJob(t *testing.T) {
	tree := crowd(t, 3)
	source := New(tree.root)
	t.Cleanup(source.Close)
	activity := &scripted{}
	source.Watch(activity)
	if err := source.Add("job", 100, Options{}); err != nil {
		t.Fatal(err)
	}
	source.Rare("job", true)
	all := len(source.procs)
	run := func() {
		for pid := range source.procs {
			activity.ran = append(activity.ran, pid)
		}
	}
	for range 3 {
		run()
		if got := readIn(t, source, false); got != all {
			t.Errorf("while it is young: got %d processes read, want all %d", got, all)
		}
	}
	source.jobs[0].begun -= youngFor
	source.fullAt = 0 // as after a second
	if got := readIn(t, source, false); got != all {
		t.Errorf("without a report of its threads: got %d processes read, want all %d", got, all)
	}
	run()
	readIn(t, source, false)
	tree.put(1001, 100, 500000, 'S', counts{cpuTicks: 300}, counts{})
	before := source.jobs[0].total[cpuTicks]
	for range 5 {
		run()
		if got := readIn(t, source, false); got != 0 {
			t.Errorf("within a second: got %d processes read, want none", got)
		}
	}
	source.fullAt -= scanInterval // as after a second
	run()
	if got := readIn(t, source, false); got != all || source.jobs[0].total[cpuTicks]-before != 300 {
		t.Errorf("after a second: got %d processes read and %d ticks, want %d and 300", got,
			source.jobs[0].total[cpuTicks]-before, all)
	}
	run()
	source.Rare("job", false)
	if got := readIn(t, source, false); got != all {
		t.Errorf("with a window: got %d processes read, want all %d", got, all)
	}
	source.Rare("job", true)
	run()
	activity.lost = true
	source.fullAt -= scanInterval // the loss is known after a second at most
	if got := readIn(t, source, false); got != all {
		t.Errorf("after a loss of events: got %d processes read, want all %d", got, all)
	}
}
