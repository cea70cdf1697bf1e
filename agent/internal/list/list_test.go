package list

import (
	"strings"
	"testing"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/window"
)

// A row says whose window it is, and that it was detected.
func TestListOfAJob(t *testing.T) {
	t.Parallel()
	all := api.Listing{Ended: []*explain.Report{{ID: "1", Kind: window.ModelLoad, Model: "llama", Source: window.Detected,
		Verdict: window.StorageBound, Job: &explain.Job{Name: "serve.py", PID: 42, Pod: "llm-0"}},
		{ID: "2", Kind: window.Custom, Name: "other", Source: window.Announced, Verdict: window.Unknown}}}
	var out strings.Builder
	if err := output.WriteTable(&out, func(to *output.Table) { printWindows(to, all, 2) }); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{" storage_bound  detected  of llm-0 42\n", " unknown\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("got\n%s, want a line that ends with %q", out.String(), want)
		}
	}
}
