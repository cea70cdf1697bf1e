package agent

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/internal/page"
)

// readPage returns the data of a page of --html.
func readPage(t *testing.T, path string) *page.Data {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(text), "<!DOCTYPE html>") {
		t.Fatalf("got %.40q..., want an HTML page", text)
	}
	found := regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`).FindSubmatch(text)
	if found == nil {
		t.Fatal("got a page without data")
	}
	var d page.Data
	if err := json.Unmarshal(found[1], &d); err != nil {
		t.Fatalf("got the error %v from the page's data, want none", err)
	}
	return &d
}

const twoEpochs = "echo Epoch 1/2; sleep 0.3; echo Epoch 2/2; sleep 0.3"

func TestHTMLOfARun(t *testing.T) {
	folder := t.TempDir()
	html, report := filepath.Join(folder, "run.html"), filepath.Join(folder, "run.json")
	v := stallspan(t, "run", "--html", html, "--report", report, "--name", "two", "--", "sh", "-c", twoEpochs)
	if code := v.run(); code != 0 {
		t.Fatalf("exit code %d: %s", code, v.err.String())
	}
	d, r := readPage(t, html), readReport(t, report)
	if d.Title != "two" || d.Run == nil || len(d.Windows) != 2 || len(r.Windows) != 2 {
		t.Fatalf("got the title %q, a run: %v, and %d windows, want two, true and 2", d.Title, d.Run != nil, len(d.Windows))
	}
	for i := range d.Windows {
		if got, want := d.Windows[i].Report.Duration, r.Windows[i].Duration; got != want {
			t.Errorf("window %d: got %v s in the page, want %v as in the report", i, got, want)
		}
	}
	if first, second := d.Windows[0].Start, d.Windows[1].Start; second < first+0.25 || second > d.Duration {
		t.Errorf("got windows at %v and %v s of %v, want the second after the first", first, second, d.Duration)
	}
	if len(d.Curves.Panels) == 0 {
		t.Error("got no curves")
	}
}

// --report with the name of a page is a page.
func TestReportNamedHTML(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.html")
	if v := stallspan(t, "run", "--report", path, "--", "true"); v.run() != 0 {
		t.Fatalf("got the error %s, want none", v.err.String())
	}
	if d := readPage(t, path); len(d.Windows) != 1 {
		t.Errorf("got %d windows, want the whole run", len(d.Windows))
	}
}

func TestHTMLOfARecording(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gpu.html")
	v := stallspan(t, "replay", "--html", path, "../testdata/recordings/gpu.jsonl.gz")
	if code := v.run(); code != 0 {
		t.Fatalf("exit code %d: %s", code, v.err.String())
	}
	d := readPage(t, path)
	if !strings.Contains(d.Run.Report.Finding, "GPU") {
		t.Errorf("got the finding %q, want one about the GPU", d.Run.Report.Finding)
	}
}

func TestHTMLThatCannotBeWritten(t *testing.T) {
	v := stallspan(t, "run", "--html", "/none/run.html", "--", "true")
	if code, line := v.run(), v.errorLine(); code != cli.ExitRun || !strings.Contains(line, "--html /none/run.html") {
		t.Errorf("exit code %d: %s", code, line)
	}
}
