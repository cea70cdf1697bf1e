package process

import (
	"strconv"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/test/fixture"
)

// crowd is a process with so many children.
func crowd(t *testing.T, children int) tree {
	tree := tree{t, fixture.Root(t, "process_training")}
	var ids []int
	for i := range children {
		tree.put(1000+i, 100, 500000, 'S', counts{}, counts{})
		ids = append(ids, 1000+i)
	}
	tree.children(100, ids...)
	return tree
}

// A process in several jobs is read once in a round, and each job counts it from its own start.
func TestSharedProcesses(t *testing.T) {
	source := New(crowd(t, 20).root)
	t.Cleanup(source.Close)
	for i, pid := range []int{100, 1000, 1001, 1001} {
		if err := source.Add("job"+strconv.Itoa(i), pid, Options{}); err != nil {
			t.Fatal(err)
		}
	}
	read(t, source)
	if got, want := len(source.procs), len(source.jobs[0].members); got != want {
		t.Errorf("got %d processes, want %d, each once", got, want)
	}
	if got := source.procs[1001].users; got != 3 {
		t.Errorf("got %d users of process 1001, want 3", got)
	}
	for i := range 4 {
		source.Remove("job" + strconv.Itoa(i))
	}
	if len(source.procs) != 0 {
		t.Errorf("got %d processes after the end, want none", len(source.procs))
	}
}

// A large job is read as a whole, once a second, and at most twice a second for windows that begin and end.
func TestLargeJob(t *testing.T) {
	source := New(crowd(t, 2*maxReads).root)
	t.Cleanup(source.Close)
	if err := source.Add("large", 100, Options{}); err != nil {
		t.Fatal(err)
	}
	all := len(source.jobs[0].members)
	reads := func(rounds int, edge bool) (count int) {
		for range rounds {
			out := sample.Sample{Edge: edge}
			if err := source.Read(&out); err != nil {
				t.Fatal(err)
			}
			if alive := source.jobs[0].alive; len(out.Processes) != alive || alive < 2*maxReads {
				t.Fatalf("got %d processes, want %d in every reading", len(out.Processes), alive)
			}
			for _, p := range source.procs {
				if p.round == source.round {
					count++
				}
			}
		}
		return count
	}
	if got := reads(9, false); got > 2*all {
		t.Errorf("got %d readings of processes in 9 rounds, want at most %d", got, 2*all)
	}
	start := time.Now()
	got := reads(30, true)
	took := time.Since(start)
	if most := (2 + int(took/edgeInterval) + int(took/scanInterval)) * all; got > most {
		t.Errorf("edges: got %d readings of processes in %v, want at most %d", got, took, most)
	}
	source.jobs[0].readAt -= edgeInterval
	if got := reads(1, true); got != all {
		t.Errorf("an edge after %v: got %d readings, want all", edgeInterval, got)
	}
}

// However often a large job is followed again, few processes are opened. It is complete after some seconds.
func TestFindingIsBounded(t *testing.T) {
	const children = 3000
	source := New(crowd(t, children).root)
	t.Cleanup(source.Close)
	start := time.Now()
	opened := 0
	for range 20 {
		if err := source.Add("large", 100, Options{}); err != nil {
			t.Fatal(err)
		}
		opened += len(source.procs)
		source.Remove("large")
	}
	if most := findBurst + 20 + int(findRate*time.Since(start).Seconds()); opened > most {
		t.Errorf("got %d processes opened in %v, want at most %d", opened, time.Since(start), most)
	}
	if err := source.Add("large", 100, Options{}); err != nil {
		t.Fatal(err)
	}
	for range 8 {
		source.found.at -= time.Second // as if a second had passed
		source.lookNow()
		source.jobs[0].readAt = 0
		read(t, source)
	}
	if got := source.jobs[0].alive; got < children {
		t.Errorf("got %d processes in the end, want %d", got, children)
	}
}
