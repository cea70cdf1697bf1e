package jobs

import (
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/api"
)

// Jobs of one name show their numbers, others do not. Without a GPU, no GPU was busy.
func TestJobsOfOneName(t *testing.T) {
	t.Parallel()
	all := &api.Jobs{Jobs: []api.Job{
		{Name: "train.py", User: "ann", PID: 14365, Running: true, JobTime: api.JobTime{Busy: 40, Allocated: 40}},
		{Name: "train.py", User: "ann", PID: 14377, JobTime: api.JobTime{Other: 40, Allocated: 40}},
		{Name: "serve.py", User: "bob", PID: 99, Running: true, JobTime: api.JobTime{CPU: 40, Allocated: 40}},
	}}
	all.Jobs[0].GPUs = []api.JobGPU{{ID: "GPU-0"}}
	var out strings.Builder
	if err := output.WriteTable(&out, func(to *output.Table) { printJobs(to, all, time.Now()) }); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\ntrain.py 14365         ann             1    40 s 100 %     0 %", "\ntrain.py 14377, ended  ann ",
		"\nserve.py               bob             -    40 s     -     0 % 100 %",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got\n%s, want a line with %q", out.String(), want)
		}
	}
}
