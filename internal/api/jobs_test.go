package api

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// A user sees his own jobs; who else holds the GPU shows as nothing but the GPU's free time.
func TestJobsOfOthers(t *testing.T) {
	at := func(s int64) sample.Stamp { return sample.Stamp{Wall: time.Unix(s, 0)} }
	rows := []sample.GPUTime{
		{GPU: "GPU-1", Began: at(1), Until: at(100), Idle: 40 * time.Second},
		{GPU: "GPU-1", Job: "late", Began: at(50), Until: at(100), Held: true, Shared: true, Busy: 4 * time.Second,
			Storage: 3 * time.Second, CPU: 2 * time.Second, Other: time.Second, Allocated: 20 * time.Second, Gain: time.Second},
		{GPU: "GPU-2", Job: "late", Began: at(60), Until: at(110), Busy: time.Second, Allocated: time.Second},
		{Job: "early", Began: at(2), Until: at(30), Storage: 5 * time.Second, Other: 5 * time.Second},
	}
	names := []sample.JobName{
		{ID: "late", Name: "llm", User: "ann", PID: 42, Client: "uid 1000",
			Attributes: []sample.Attribute{
				{Key: "k8s.pod.name", Value: "llm-0"}, {Key: "service.name", Value: "s", Claimed: true},
			}},
		{ID: "early", Client: "uid 1001"},
	}
	for _, test := range []struct {
		who  caller
		want []string
	}{
		{caller{uid: 0}, []string{"early", "llm"}},
		{caller{uid: 1000, name: "uid 1000"}, []string{"llm"}},
		{caller{uid: 1002, name: "uid 1002"}, nil},
		{caller{uid: -1, tcp: true, name: overTCP}, nil},
		{caller{uid: -1, tcp: true, name: overTCP, trusted: true}, []string{"early", "llm"}},
	} {
		got := newJobs(rows, names, test.who.lists)
		var list []string
		for _, j := range got.Jobs {
			list = append(list, j.Name)
		}
		if len(list) != len(test.want) || len(got.GPUs) != 1 || got.GPUs[0].Idle != 40 {
			t.Fatalf("%+v: got %q and %+v, want %q and a GPU idle for 40 s", test.who, list, got.GPUs, test.want)
		}
		for i := range list {
			if list[i] != test.want[i] {
				t.Errorf("%+v: got %q, want %q", test.who, list, test.want)
			}
		}
	}
	late := newJobs(rows, names, (&caller{}).lists).Jobs[1]
	if late.Allocated != 21 || late.Busy != 5 || late.Gain != 1 || len(late.GPUs) != 2 || !late.GPUs[0].Shared ||
		!late.Running || !late.Began.Equal(time.Unix(50, 0)) || !late.Until.Equal(time.Unix(110, 0)) ||
		late.Attributes["k8s.pod.name"] != "llm-0" || !slices.Equal(late.Claimed, []string{"service.name"}) {
		t.Errorf("got %+v, want the sum of both GPUs", late)
	}
}

// A job without a known name is called by its process, and storage saves no more than storage and the CPU took.
func TestJobWithoutAName(t *testing.T) {
	at := sample.Stamp{Wall: time.Unix(1, 0)}
	rows := []sample.GPUTime{{Job: "process 121 of 6515703", Began: at, Until: at, Storage: time.Second,
		CPU: 3 * time.Second, Other: 69 * time.Second, Gain: 71 * time.Second}}
	j := newJobs(rows, nil, (&caller{}).lists).Jobs[0]
	stored := newJobs(rows, []sample.JobName{{ID: rows[0].Job}}, (&caller{}).lists).Jobs[0]
	for _, j := range []Job{j, stored} {
		if j.ID != rows[0].Job || j.Name != "process 121" || j.PID != 121 {
			t.Errorf("got %+v, want process 121", j)
		}
	}
	if j.Gain != 4 || j.Fix == nil || j.Fix.Says != "instant storage: 1.1x" {
		t.Errorf("got the gain %v and %+v, want 4 s and 1.1x", j.Gain, j.Fix)
	}
}

// A query chooses the time, a user gets his own jobs of it, and what is missing is reported.
func TestJobsOfThePast(t *testing.T) {
	began := time.Unix(1_764_000_000, 0)
	past := &kept{
		times: []sample.GPUTime{
			{GPU: "GPU-1", Job: "a", Began: sample.Stamp{Wall: began}, Busy: time.Minute, Allocated: time.Minute},
			{GPU: "GPU-1", Job: "b", Began: sample.Stamp{Wall: began}, Other: time.Minute, Allocated: time.Minute},
		},
		names: []sample.JobName{{ID: "a", Name: "mine"}, {ID: "b", Name: "other", Client: "uid 7"}},
	}
	s := serve(t, func(s *Server) { s.Keeping(past) })
	all, err := s.Jobs(t.Context(), time.Time{}, time.Time{})
	if err != nil || len(all.Jobs) != 2 || all.Problem != "" {
		t.Fatalf("got %+v, %v, want two jobs", all, err)
	}
	if span := time.Since(past.from); span < jobsSpan || span > jobsSpan+time.Minute || !past.until.IsZero() {
		t.Errorf("got the time from %v to %v, want the last day", past.from, past.until)
	}
	if _, err = s.Jobs(t.Context(), began, began.Add(time.Hour)); err != nil || !past.from.Equal(began) ||
		!past.until.Equal(began.Add(time.Hour)) {
		t.Errorf("got %v, from %v to %v, want what was asked for", err, past.from, past.until)
	}
	past.err = errors.New("disk gone")
	if all, err = s.Jobs(t.Context(), began, time.Time{}); err != nil || !strings.Contains(all.Problem, "disk gone") ||
		len(all.Jobs) != 2 {
		t.Errorf("got %+v, %v, want the jobs of this program, and the problem", all, err)
	}
}

// Unused time that began before the time that is listed is not more than the rest of it.
func TestUnusedIsPartOfOther(t *testing.T) {
	rows := []sample.GPUTime{{GPU: "GPU-1", Job: "a", Busy: time.Minute, Other: 3 * time.Minute, Unused: 5 * time.Minute}}
	j := newJobs(rows, nil, (&caller{}).lists).Jobs[0]
	if j.Unused != 180 || j.GPUs[0].Unused != 180 || j.Fix == nil || j.Fix.Says != "release it when idle: 75 %" {
		t.Errorf("got %+v and the fix %+v, want three minutes unused", j, j.Fix)
	}
}

// The best fix is the one that gives most, and a twentieth at least: less would read as 1.0x.
func TestFix(t *testing.T) {
	for _, test := range []struct {
		time JobTime
		want string
	}{
		{JobTime{Busy: 50, Storage: 40, CPU: 10, Gain: 50}, "instant storage: 2.0x"},
		{JobTime{Busy: 50, Storage: 10, CPU: 40, Gain: 10}, "more CPU: 1.7x at most"},
		{JobTime{Busy: 10, Other: 90, Unused: 60}, "release it when idle: 60 %"},
		{JobTime{Busy: 95, CPU: 5}, "more CPU: 1.1x at most"},
		{JobTime{Busy: 5, CPU: 95}, "more CPU: 20x at most"},
		{JobTime{CPU: 100}, "more CPU: 100x at most"},
		{JobTime{Busy: 1000, Storage: 49, Gain: 49}, ""},
		{JobTime{}, ""},
	} {
		got := ""
		if fix := test.time.fix(); fix != nil {
			got = fix.Says
		}
		if got != test.want {
			t.Errorf("%+v: got %q, want %q", test.time, got, test.want)
		}
	}
}
