package agent

import (
	"encoding/json"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/test/fixture"
)

// curl announces a window and ends at once. Its window is about the whole machine, and says why. With the process that
// does the work it is about that one.
func TestWindowOfAClientThatIsGone(t *testing.T) {
	t.Parallel()
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("needs curl")
	}
	socket := socketIn(t)
	v, _ := startAgent(t, socket)
	defer stop(t, v)
	worker, _ := fixture.Sleeper(t)
	pid := strconv.Itoa(worker)
	for _, c := range []struct {
		body, scope string
		says        bool
	}{
		{`{"kind":"epoch","epoch":1}`, "host", true},
		{`{"kind":"epoch","epoch":2,"pid":` + pid + `}`, "process", false},
	} {
		out, err := exec.Command(curl, "-sS", "--unix-socket", socket, "http://localhost/v1/windows", "-d", c.body).Output()
		if err != nil {
			t.Fatal(err)
		}
		var begun api.Begun
		if err := json.Unmarshal(out, &begun); err != nil {
			t.Fatalf("unmarshal %s: %v", out, err)
		}
		time.Sleep(300 * time.Millisecond)
		text, err := api.NewClient(socket).End(t.Context(), begun.ID)
		if err != nil {
			t.Fatal(err)
		}
		var report struct{ Scope, Finding, Remedy, Verdict string }
		if err := json.Unmarshal(text, &report); err != nil {
			t.Fatal(err)
		}
		says := strings.Contains(report.Finding, "named no process and has ended")
		if report.Scope != c.scope || says != c.says {
			t.Errorf("%s: got the scope %s, said %v, want %s, %v: %s",
				c.body, report.Scope, says, c.scope, c.says, report.Finding)
		}
		named := strings.Contains(report.Remedy, "with the pid")
		if c.says && report.Verdict == string(window.Unknown) && !named {
			t.Errorf("%s: got the remedy %q, want the pid", c.body, report.Remedy)
		}
	}
}
