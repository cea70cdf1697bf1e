package agent

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/agent/internal/bench"
	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/window"
)

// The real program measures a model, and finds the loads of it that an agent has seen.
func TestLoad(t *testing.T) {
	t.Parallel()
	path, socket := benchFile(t), socketIn(t)
	agent, _ := startAgent(t, socket)
	client := api.NewClient(socket)
	load := func(of string) (known bool) {
		begun, err := client.Begin(t.Context(), api.Announcement{Kind: window.ModelLoad, Model: "llama", Path: of})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
		text, err := client.End(t.Context(), begun.ID)
		if err != nil {
			t.Fatal(err)
		}
		var report explain.Report
		if err := json.Unmarshal(text, &report); err != nil {
			t.Fatal(err)
		}
		return report.Load != nil && report.Load.Size > 0
	}
	load(benchFile(t))                                     // another model
	for end := time.Now().Add(slowest / 4); !load(path); { // on a busy machine, its file may not answer in time
		if time.Now().After(end) {
			t.Fatal("no load of the model has a size")
		}
	}
	measure := func(flags ...string) *invocation {
		t.Helper()
		v := stallspan(t, append([]string{"bench", "load", "--step", "50ms", "--readers", "2"}, flags...)...)
		v.Env = append(v.Env, "STALLSPAN_SOCKET="+socket)
		if code := v.run(); code != 0 {
			t.Fatalf("exit code %d: %s", code, v.err.String())
		}
		return v
	}
	var r bench.LoadReport
	for end := time.Now().Add(slowest / 4); ; time.Sleep(time.Second) { // the agent writes its history every ten seconds
		folder := filepath.Dir(path)
		decoder := json.NewDecoder(&measure("--json", folder+"/../"+filepath.Base(folder)+"/data").out)
		decoder.DisallowUnknownFields()
		r = bench.LoadReport{}
		if err := decoder.Decode(&r); err != nil {
			t.Fatal(err)
		}
		if len(r.Past) > 0 || time.Now().After(end) {
			break
		}
	}
	if len(r.Ways) == 0 || r.NoPast != "" || len(r.Past) != 1 || r.Past[0].Name != "load llama" ||
		r.Past[0].Size != r.Size || r.Past[0].Rate <= 0 {
		t.Errorf("got %+v, want ways and one load of the whole file", r)
	}
	text := measure(path).out.String()
	for _, want := range []string{"one reader", "2 readers", "page cache", "waiting for storage"} {
		if !strings.Contains(text, want) {
			t.Errorf("got\n%s\nwant %q", text, want)
		}
	}
	begun, err := client.Begin(t.Context(), api.Announcement{Kind: window.Epoch})
	if err != nil {
		t.Fatal(err)
	}
	v := stallspan(t, "bench", "load", path)
	v.Env = append(v.Env, "STALLSPAN_SOCKET="+socket)
	if code := v.run(); code != cli.ExitFailed || !strings.Contains(v.errorLine(), "--force") {
		t.Errorf("with an open window: got exit code %d, %s; want 1", code, v.err.String())
	}
	v = stallspan(t, "bench", "load", path+".not") // what is wrong with the argument comes first
	v.Env = append(v.Env, "STALLSPAN_SOCKET="+socket)
	if code := v.run(); code != cli.ExitFailed || !strings.Contains(v.errorLine(),
		"there is no file or folder "+path+".not") {
		t.Errorf("without a model: got exit code %d, %s; want 1", code, v.err.String())
	}
	v = stallspan(t, "bench", "load", "--readers", "0", path)
	if code := v.run(); code != cli.ExitUsage || !strings.Contains(v.errorLine(), "2 or more") {
		t.Errorf("without readers: got exit code %d, %s; want 2", code, v.err.String())
	}
	v = stallspan(t, "load", path+".not")
	if code := v.run(); code != cli.ExitFailed || !strings.Contains(v.err.String(), "use stallspan bench load") ||
		!strings.Contains(v.err.String(), "there is no file or folder") {
		t.Errorf("the old name: got exit code %d, %s; want 1, and the new name", code, v.err.String())
	}
	if _, err := client.End(t.Context(), begun.ID); err != nil {
		t.Error(err)
	}
	stop(t, agent)
}
