package process

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// kernel models how Linux starts, runs and ends processes, and writes them to a tree. It also counts the exact work of
// the job. It leaves out cases that no reading can distinguish: two children that end at almost the same time while a
// reading shows the inheritance of one, and a child that ends with its parent before any process waits for it.
type kernel struct {
	tree
	*rand.Rand
	next, clock int
	processes   map[int]*modelled
	truth       counts
	late        []func() // inheritances that a reading has just missed
	wasLate     bool     // the last reading has missed one
	ended       bool     // something has, since the last reading
	lazy        bool     // there are ordinary readings too, and no inheritance is late
}

type modelled struct {
	pid, parent int
	start       int
	own, reaped counts
	seen        counts // at the last reading
	wasSeen     bool
	ignores     bool // SIGCHLD: it does not wait for its children
	hold        int  // for how many readings it must not end
}

func (k *kernel) spawn(parent int) *modelled {
	k.next++
	k.clock += k.IntN(3)
	p := &modelled{pid: k.next, parent: parent, start: k.clock, ignores: k.IntN(4) == 0}
	k.processes[p.pid] = p
	if forked := k.processes[parent]; forked != nil {
		forked.own[faults]++ // for the page that it shares with its child no longer
	}
	k.work(p)
	return p
}

func (k *kernel) work(p *modelled) {
	done := counts{k.Uint64N(50), 1 + k.Uint64N(500), k.Uint64N(1e6), k.Uint64N(1e6), k.Uint64N(1e6)}
	p.own = p.own.plus(done)
	k.truth = k.truth.plus(done)
}

func (k *kernel) exit(p *modelled) {
	for _, child := range k.processes {
		if child.parent == p.pid {
			child.parent, child.hold = 1, 1
		}
	}
	delete(k.processes, p.pid)
	k.end(p.pid)
	all := p.own.plus(p.reaped)
	parent := k.processes[p.parent]
	if parent == nil || parent.ignores { // not waited for: work after the last reading is lost
		k.truth = k.truth.minus(all.minus(p.seen))
		if parent != nil {
			parent.hold = 2
		}
		return
	}
	inherit := func() {
		parent.reaped = parent.reaped.plus(all)
		parent.seen = parent.seen.plus(p.seen) // it was, in the child
	}
	if k.IntN(3) == 0 && p.wasSeen && !k.ended && !k.lazy {
		k.late = append(k.late, inherit)
	} else {
		inherit()
	}
	k.ended = true
}

// hides reports whether a process has children that no reading has seen.
func (k *kernel) hides(p *modelled) bool {
	for _, child := range k.processes {
		if child.parent == p.pid && !child.wasSeen {
			return true
		}
	}
	return false
}

func (k *kernel) random() *modelled {
	pids := make([]int, 0, len(k.processes))
	for pid := range k.processes {
		pids = append(pids, pid)
	}
	slices.Sort(pids)
	return k.processes[pids[k.IntN(len(pids))]]
}

func (k *kernel) print() {
	for _, p := range k.processes {
		var children []int
		for _, child := range k.processes {
			if child.parent == p.pid {
				children = append(children, child.pid)
			}
		}
		k.put(p.pid, p.parent, uint64(p.start), 'S', p.own, p.reaped)
		k.children(p.pid, children...)
	}
}

// TestCountersOnlyGrowAndAreTrue creates, ends, reaps and orphans processes at random. The job's counters must never
// decrease or exceed what was done, and must equal it whenever no inheritance is in progress.
func TestCountersOnlyGrowAndAreTrue(t *testing.T) {
	if exists("/dev/shm") {
		t.Setenv("TMPDIR", "/dev/shm") // files on a disk take ten times as long
	}
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) { randomLife(t, seed, false, nil) })
		synctest.Test(t, func(t *testing.T) { randomLife(t, seed, true, nil) })
	}
}

// randomLife has a process end within a round of readings where tear is not nil: tear arms that for the next round.
func randomLife(t *testing.T, seed uint64, lazy bool, tear func(*Source, *kernel) (arm func(then func()))) {
	k := &kernel{
		tree:      tree{t, t.TempDir()},
		Rand:      rand.New(rand.NewPCG(seed, 1)),
		next:      99,
		processes: map[int]*modelled{},
		lazy:      lazy,
	}
	first := k.spawn(1)
	first.ignores = false
	k.print()
	source := New(k.root)
	defer source.Close()
	arm := func(func()) {}
	if tear != nil {
		arm = tear(source, k)
	}
	if err := source.Add("job", first.pid, Options{}); err != nil {
		t.Fatal(err)
	}
	k.truth = counts{}
	first.seen, first.wasSeen = first.own, true

	var before counts
	for round := range 60 {
		for range k.IntN(6) {
			p := k.random()
			switch choice := k.IntN(5); {
			case choice <= 1 && len(k.processes) < 30:
				k.spawn(p.pid)
			case choice == 2 && p.hold == 0 && p != first && len(k.late) == 0:
				k.exit(p)
			default:
				k.work(p)
			}
		}
		// An orphan that was never seen would be lost, with all below it.
		for _, p := range k.processes {
			if p.parent == 1 && !p.wasSeen {
				p.parent = first.pid
				first.own[faults]++
			}
		}
		k.print()
		time.Sleep(time.Second)
		torn := false
		arm(func() {
			p := k.random()
			if torn = p != first && p.hold == 0 && p.wasSeen && !k.hides(p) && !k.ended && !k.wasLate; torn {
				k.exit(p)
				k.print()
			}
		})
		if k.lazy { // whatever it leaves out, the next reading for an edge has
			ordinary(t, source)
		}
		got := read(t, source).Jobs[0]
		now := counts{uint64(got.CPUTime / Tick), 0, got.ReadBytes, got.ReadChars, got.WriteBytes}
		if !now.covers(before) {
			t.Fatalf("seed %d, round %d: %v after %v", seed, round, now, before)
		}
		before = now
		truth := k.truth
		truth[faults] = 0
		if !truth.covers(now) || len(k.late) == 0 && !torn && now != truth {
			t.Fatalf("seed %d, round %d: %v, in truth %v", seed, round, now, truth)
		}
		if len(k.late) == 0 && got.Processes != len(k.processes) {
			t.Fatalf("seed %d, round %d: %d processes, in truth %d", seed, round, got.Processes, len(k.processes))
		}
		for _, p := range k.processes {
			p.seen, p.wasSeen, p.hold = p.own.plus(p.reaped), true, max(p.hold-1, 0)
		}
		for _, inherit := range k.late {
			inherit()
		}
		k.late, k.ended, k.wasLate = nil, false, len(k.late) > 0
		for range k.IntN(20) {
			if k.lazy && !ordinary(t, source).Jobs[0].HasIO {
				t.Fatal("the bytes were lost")
			}
		}
	}
}

// ordinary takes a reading that is for no edge.
func ordinary(t *testing.T, source *Source) *sample.Sample {
	t.Helper()
	var s sample.Sample
	if err := source.Read(&s); err != nil {
		t.Fatal(err)
	}
	return &s
}

// A parent whose own bytes are another user's inherits the CPU time, and the bytes stay counted as they were.
func TestInheritWithoutBytes(t *testing.T) {
	parent := &member{proc: &proc{}, gain: counts{cpuTicks: 10, faults: 10}}
	child := &member{proc: &proc{hasIO: true}, now: counts{5, 5, 1000, 2000, 3000}, base: counts{1, 1, 100, 200, 300}}
	var left counts
	if !parent.inherit(child, &left) {
		t.Fatal("not inherited")
	}
	if want := (counts{0, 0, 900, 1800, 2700}); left != want {
		t.Errorf("left %v, want %v", left, want)
	}
	if want := (counts{5, 5, 0, 0, 0}); parent.adopted != want || parent.gain != want {
		t.Errorf("parent %+v", parent)
	}
	if parent.base != (counts{1, 1, 0, 0, 0}) {
		t.Errorf("base %v", parent.base)
	}
}

func TestCountsStopAtTheirEnds(t *testing.T) {
	const most = ^uint64(0)
	if got := (counts{most, 1}).plus(counts{1, 1}); got != (counts{most, 2}) {
		t.Errorf("plus: %v", got)
	}
	if got := (counts{1, 3}).minus(counts{2, 1}); got != (counts{0, 2}) {
		t.Errorf("minus: %v", got)
	}
	if duration(most) <= 0 {
		t.Error("a duration turned over")
	}
}
