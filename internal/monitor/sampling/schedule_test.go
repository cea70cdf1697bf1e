package sampling

import (
	"errors"
	"slices"
	"testing"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/moments"
)

// scheduler notes which jobs it follows.
type scheduler map[string][]int

func (scheduler) Read(*sample.Sample) error { return nil }
func (scheduler) Refused() error            { return nil }
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
	r.now.schedule.events, r.now.schedule.moments = followed, moments.New()
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

// late is a scheduler that the kernel refuses at first.
type late struct {
	scheduler
	refused error
}

func (l *late) Refused() error { return l.refused }

// A job that is looked at because events were refused is followed by events once these can be had.
func TestEventsComeLater(t *testing.T) {
	r, err := New(Config{}, &Problems{})
	if err != nil {
		t.Fatal(err)
	}
	events := &late{scheduler{}, errors.New("a policy forbids it")}
	looked := moments.New()
	r.now.schedule.events, r.now.schedule.moments = events, looked
	r.now.follow(&job{Job: Job{ID: "a"}})
	reading := &sample.Sample{At: sample.Stamp{Mono: 1}, Jobs: []sample.Job{{ID: "a"}},
		Processes: []sample.Process{{Job: "a", PID: 10}}}
	r.now.learn(reading)
	if got := r.now.schedule.missing(); got != "a policy forbids it" || len(events.scheduler) != 0 {
		t.Errorf("got %q and events of %v, want the refusal and none", got, events.scheduler)
	}
	events.refused = nil
	r.now.learn(reading)
	if got := r.now.schedule.missing(); got != "" || !slices.Equal(events.scheduler["a"], []int{10}) {
		t.Errorf("got %q and events of %v, want those of a", got, events.scheduler)
	}
	r.Unfollow("a")
	if len(events.scheduler) != 0 {
		t.Errorf("the scheduler follows %v, want none", events.scheduler)
	}
}
