package sampling

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
)

// The jobs of a recording are bounded.
func TestRecordedJobs(t *testing.T) {
	r, err := New(Config{}, &Problems{})
	if err != nil {
		t.Fatal(err)
	}
	mark := func(op recording.Op, id string) {
		r.Apply(&recording.Entry{Mark: &recording.Mark{Op: op, ID: id}})
	}
	for i := range 2 * maxRecordedJobs {
		mark(recording.Follow, string(rune('A'+i)))
	}
	if got := len(r.now.jobs.byID); got != maxRecordedJobs {
		t.Errorf("got %d jobs, want %d", got, maxRecordedJobs)
	}
	mark(recording.Leave, "A")
	mark(recording.Leave, "unknown")
	if got := len(r.now.jobs.byID); r.now.jobs.byID["A"] != nil || got != maxRecordedJobs-1 {
		t.Errorf("got %d jobs, A is %v, want %d without A", got, r.now.jobs.byID["A"], maxRecordedJobs-1)
	}
}

// Edges that wait for a GPU are bounded: their cost would grow with the square of their number, here to seconds.
func TestRecordedEdges(t *testing.T) {
	r, err := New(Config{}, &Problems{})
	if err != nil {
		t.Fatal(err)
	}
	gpus := func(at time.Duration) {
		s := &sample.Sample{At: sample.Stamp{Mono: at}, GPUs: []sample.GPU{{ID: "GPU-1"}}}
		r.Apply(&recording.Entry{Source: "gpu", Sample: s})
	}
	gpus(time.Second)
	gpus(2 * time.Second)
	const edges = 40_000
	for i := range edges { // each before the last one, which is the worst order
		at := sample.Stamp{Mono: 2*time.Second + time.Duration(edges-i)*time.Microsecond}
		r.Apply(&recording.Entry{Mark: &recording.Mark{Op: recording.Edge, Edge: uint64(i + 1), At: &at}})
	}
	if got := len(r.now.accounts.waiting); got != maxWaiting {
		t.Errorf("got %d edges that wait, want %d", got, maxWaiting)
	}
}

// A moment that a recording refers to by a later edge lies before it: its readings are interpolated.
func TestRecordedPastMoment(t *testing.T) {
	r, err := New(Config{}, &Problems{})
	if err != nil {
		t.Fatal(err)
	}
	edge := sample.Stamp{Mono: 5 * time.Second}
	r.Apply(&recording.Entry{Mark: &recording.Mark{Op: recording.Edge, Edge: 1, At: &edge}})
	for _, mono := range []time.Duration{3 * time.Second, 5 * time.Second} {
		at, _ := r.Recorded(&recording.Mark{Op: recording.End, Edge: 1, At: &sample.Stamp{Mono: mono}})
		past := mono < edge.Mono
		if at.At.Mono != mono || (at.edge == nil) != past || (at.next != nil) != past || past && at.next.At != edge.Mono {
			t.Errorf("at %v: got %+v", mono, at)
		}
	}
}
