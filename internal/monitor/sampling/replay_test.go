package sampling

import (
	"testing"

	"github.com/stallspan/stallspan/internal/recording"
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
