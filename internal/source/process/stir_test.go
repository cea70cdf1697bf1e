package process

import (
	"slices"
	"testing"
	"time"
)

// A job that is read rarely is read in every round for a second once it reads much, and wakes who looks at it. One
// that goes on reading is left alone after that, for longer each time, unless something came of it.
func TestStir(t *testing.T) {
	tree := crowd(t, 3)
	source := New(tree.root)
	t.Cleanup(source.Close)
	activity := &scripted{}
	source.Watch(activity)
	wake := make(chan struct{}, 1)
	source.Stirs(wake)
	if err := source.Add("job", 100, Options{}); err != nil {
		t.Fatal(err)
	}
	source.jobs[0].begun -= youngFor
	source.Rare("job", true)
	readIn(t, source, false)
	for pid := range source.procs {
		activity.ran = append(activity.ran, pid)
	}
	source.fullAt -= scanInterval
	readIn(t, source, false)
	j := source.jobs[0]
	rests := func() bool {
		readIn(t, source, false)
		return j.round != source.round
	}
	noted := func() (got []string) {
		source.EachStirred(func(id string) { got = append(got, id) })
		woken := len(wake) == 1
		if woken {
			<-wake
		}
		if woken != (len(got) > 0) {
			t.Errorf("got a wake-up %v for %v, want both or none", woken, got)
		}
		return got
	}
	later := func(d time.Duration) { // as after some time
		j.stirring.until -= d
		j.stirring.next -= d
	}
	if !rests() || noted() != nil {
		t.Fatal("a job that reads nothing: got a reading or a message, want none")
	}
	activity.moved = []string{"job", "another"}
	if rests() || !slices.Equal(noted(), []string{"job"}) {
		t.Error("when it reads: got no reading or no message, want both")
	}
	if rests() {
		t.Error("right after that: got no reading, want one in each round")
	}
	later(stirFor)
	readIn(t, source, false) // the last one
	activity.moved = []string{"job"}
	if !rests() || noted() != nil {
		t.Error("when it reads after a second: got a reading or a message, want none: nothing came of the first one")
	}
	later(stirWait)
	activity.moved = []string{"job"}
	if rests() || noted() == nil {
		t.Error("when it reads some seconds later: got no reading or no message, want both")
	}
	later(stirFor + stirWait)
	readIn(t, source, false)
	activity.moved = []string{"job"}
	if !rests() || noted() != nil {
		t.Error("when it still reads: got a reading or a message, want none for twice as long")
	}
	source.Rare("job", false)
	source.Rare("job", true)
	activity.moved = []string{"job"}
	if rests() || noted() == nil {
		t.Error("when it reads after a window: got no reading or no message, want both")
	}
}

// Where the scheduler reports nothing, the readings of each round say it.
func TestStirByReadings(t *testing.T) {
	tree := crowd(t, 0)
	tree.put(100, 1, 1000, 'R', counts{}, counts{})
	source := New(tree.root)
	t.Cleanup(source.Close)
	wake := make(chan struct{}, 1)
	source.Stirs(wake)
	if err := source.Add("job", 100, Options{}); err != nil {
		t.Fatal(err)
	}
	for i, read := range []uint64{stirBytes - 1, 2*stirBytes - 2, 4 * stirBytes} {
		tree.put(100, 1, 1000, 'R', counts{readChars: read, cpuTicks: uint64(i)}, counts{})
		readIn(t, source, true)
		if got, want := len(wake) == 1, i == 2; got != want {
			t.Errorf("after %d bytes: got a message %v, want %v", read, got, want)
		}
	}
}
