package agent

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/agent/internal/reports"
	"github.com/stallspan/stallspan/semconv"
)

func TestHowItEnded(t *testing.T) {
	t.Parallel()
	for program, want := range map[string]string{
		"kill -9 $$":               "stallspan: the program failed: SIGKILL",
		"kill -BUS $$":             "stallspan: the program failed: SIGBUS: it read a mapped file that could not be read",
		"kill -TERM $$":            "stallspan: the program was ended: SIGTERM",
		"sh -c 'kill -9 $$'; exit": "stallspan: the program failed: SIGKILL",
		"echo crashed; exit 3":     "stallspan: the program failed: exit code 3",
		"echo iter 1; echo iter 2": `"iter 1" looks like a counter: try --epoch-pattern 'iter (\d+)'`,
		"echo hello":               "No epochs: the program's only line of output marks none. If it has epochs, give",
		"echo hello; echo you":     "No epochs: none of the program's 2 lines of output marks one. If it has epochs, give",
		"echo Epoch 1/1":           "1 slow",
	} {
		v := stallspan(t, "run", "--", "sh", "-c", program)
		v.run()
		got := strings.Join(strings.Fields(v.err.String()), " ")
		if has := strings.Contains(got, want); has != (want != "1 slow") {
			t.Errorf("%s: got %q, want %q in it", program, got, want)
		}
	}
}

// The report of a run says which command it is about.
func TestReportNamesTheProgram(t *testing.T) {
	t.Parallel()
	v := stallspan(t, "run", "--json", "--", "sh", "-c", "exit 3")
	v.run()
	var got struct {
		Program reports.ProgramDocument `json:"program"`
	}
	if err := json.Unmarshal(v.err.Bytes(), &got); err != nil {
		t.Fatalf("got %v, want JSON: %s", err, v.err.String())
	}
	p := got.Program
	if strings.Join(p.Command, " ") != "sh -c exit 3" || p.Code != 3 || p.Host == "" || p.Version == "" ||
		p.Schema != semconv.SchemaURL {
		t.Errorf("got the program %+v, want its command, exit code 3, host, version and schema", p)
	}
}
