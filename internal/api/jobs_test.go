package api

import (
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
			Attributes: []sample.Attribute{{Key: "k8s.pod.name", Value: "llm-0"}}},
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
		got := newJobs(rows, names, test.who.owns)
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
	late := newJobs(rows, names, (&caller{}).owns).Jobs[1]
	if late.Allocated != 21 || late.Busy != 5 || late.Gain != 1 || len(late.GPUs) != 2 || !late.GPUs[0].Shared ||
		!late.Running || !late.Began.Equal(time.Unix(50, 0)) || !late.Until.Equal(time.Unix(110, 0)) ||
		late.Attributes["k8s.pod.name"] != "llm-0" {
		t.Errorf("got %+v, want the sum of both GPUs", late)
	}
}
