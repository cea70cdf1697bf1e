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

// scheduler notes which jobs it follows.
type scheduler map[string][]int

func (scheduler) Read(*sample.Sample) error { return nil }
func (scheduler) Close() error              { return nil }
func (s scheduler) Unfollow(job string)     { delete(s, job) }

func (s scheduler) Follow(job string, pids []int) error {
	s[job] = pids
	return nil
}

func (s scheduler) Sync(job string, pids []int) error { return s.Follow(job, pids) }

// A job that is left while a reading of it is under way is not followed again by that reading.
func TestLeftJobIsNotFollowedAgain(t *testing.T) {
	followed := scheduler{}
	r, err := New(Config{}, &Problems{})
	if err != nil {
		t.Fatal(err)
	}
	r.now.schedule.source = followed
	r.now.follow(&job{Job: Job{ID: "a"}})
	r.now.follow(&job{Job: Job{ID: "b"}})
	reading := &sample.Sample{At: sample.Stamp{Mono: 1}, Jobs: []sample.Job{{ID: "a"}, {ID: "b"}},
		Processes: []sample.Process{{Job: "a", PID: 10}, {Job: "b", PID: 20}}}
	r.now.learn(reading)
	r.Unfollow("a")
	r.now.learn(reading)
	if len(followed) != 1 || !slices.Equal(followed["b"], []int{20}) {
		t.Errorf("the scheduler follows %v, want b alone", followed)
	}
}
