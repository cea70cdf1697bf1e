package sampling

import (
	"errors"
	"slices"
	"testing"

	"github.com/stallspan/stallspan/internal/sample"
)

type always struct{}

func (always) Read(*sample.Sample) error { return nil }

type rests bool

func (r *rests) Rests() bool { return bool(*r) }

// The scheduler's events are read once after each reading of jobs that are read rarely, in each round while others are,
// and for each edge.
func TestEventsAfterJobs(t *testing.T) {
	var resting rests
	source := &afterJobs{events: always{}, jobs: &resting}
	for _, c := range []struct {
		name        string
		rests, want []bool
	}{
		{"all jobs in each round", []bool{false, false, false}, []bool{true, true, true}},
		{"rarely", []bool{true, true, true, false, true, true, false, true}, []bool{true, false, false, false, true, false, false, true}},
		{"a window begins between two readings", []bool{true, false, false}, []bool{false, false, true}},
	} {
		var got []bool
		for _, now := range c.rests {
			resting = rests(now)
			got = append(got, !errors.Is(source.Read(&sample.Sample{}), sample.ErrLeftOut))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	resting = true
	for range 3 {
		if err := source.Read(&sample.Sample{Edge: true}); err != nil {
			t.Errorf("an edge: got %v, want a reading", err)
		}
	}
}
