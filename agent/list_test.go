package agent

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/window"
)

// A program under run is listed without an agent.
func TestListOfARun(t *testing.T) {
	temp := t.TempDir()
	run := stallspan(t, "run", "--name", "listed", "--", "sh", "-c", "echo Epoch 1/1; exec sleep 600")
	run.Env = append(run.Env, "TMPDIR="+temp)
	run.start()
	defer func() { _ = run.Process.Signal(syscall.SIGTERM); run.wait() }()
	var got string
	for end := time.Now().Add(slowest / 2); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		ls := stallspan(t, "ls")
		ls.Env = append(slices.DeleteFunc(ls.Env, func(v string) bool { return strings.HasPrefix(v, "STALLSPAN_SOCKET=") }),
			"TMPDIR="+temp, "XDG_RUNTIME_DIR="+temp)
		ls.run()
		if got = ls.out.String(); regexp.MustCompile(`epoch 1 .* open, `).MatchString(got) {
			return
		}
	}
	t.Errorf("got %q, want the open epoch of the run", got)
}

// After its end, a run's windows are with the agent.
func TestListAfterARun(t *testing.T) {
	t.Parallel()
	socket := socketIn(t)
	agent, _ := startAgent(t, socket)
	defer stop(t, agent)
	run := stallspan(t, "run", "--name", "listed", "--", "sh", "-c", "echo Epoch 1/1; sleep 0.3")
	run.Env = append(run.Env, "STALLSPAN_SOCKET="+socket)
	if code := run.run(); code != 0 {
		t.Fatalf("got exit code %d: %s", code, &run.err)
	}
	var got api.Listing
	end := time.Now().Add(slowest / 2)
	for ; time.Now().Before(end) && len(got.Ended) < 2; time.Sleep(50 * time.Millisecond) {
		var err error
		if got, err = api.NewClient(socket).Windows(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(got.Ended) != 2 || got.Ended[0].Label() != "epoch 1" || got.Ended[1].Label() != "listed" {
		t.Errorf("got %+v, want the epoch and the run", got.Ended)
	}
	if want := fmt.Sprint("uid ", os.Geteuid()); got.Ended[0].Reporter != want {
		t.Errorf("got the reporter %q, want %s", got.Ended[0].Reporter, want)
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	socket := socketIn(t)
	agent, _ := startAgent(t, socket)
	defer stop(t, agent)
	list := func(args ...string) string {
		v := stallspan(t, append([]string{"ls"}, args...)...)
		v.Env = append(v.Env, "STALLSPAN_SOCKET="+socket)
		if code := v.run(); code != 0 {
			t.Fatalf("ls %v: got exit code %d: %s", args, code, &v.err)
		}
		return v.out.String()
	}
	if got := list(); !strings.HasPrefix(got, "No windows are open") {
		t.Errorf("got %q, want a line that says so", got)
	}
	client := api.NewClient(socket)
	var ids []string
	for epoch := range 4 {
		begun, err := client.Begin(t.Context(), api.Announcement{Kind: window.Epoch, Epoch: &epoch})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, begun.ID)
	}
	for _, id := range ids[:3] {
		if _, err := client.End(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	got := list("--last", "2")
	want := fmt.Sprintf(`^ID .*verdict\n%s \S+ epoch 3 .* open, .*\n\.\.\. 1 earlier.*\n%s .* epoch 1 .*\n%s .* epoch 2 .*\n$`,
		ids[3], ids[1], ids[2])
	if !regexp.MustCompile(want).MatchString(got) {
		t.Errorf("got:\n%swant: %s", got, want)
	}
	if got := list("--json"); strings.Count(got, `"finding"`) != 4 {
		t.Errorf("got %s, want four reports", got)
	}
}

// What an agent has kept is listed once, also when the agent has ended.
func TestListSince(t *testing.T) {
	t.Parallel()
	socket := socketIn(t)
	agent, _ := startAgent(t, socket)
	client := api.NewClient(socket)
	begun, err := client.Begin(t.Context(), api.Announcement{Kind: window.Custom, Name: "kept"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.End(t.Context(), begun.ID); err != nil {
		t.Fatal(err)
	}
	list := func(args ...string) (code int, text string) {
		v := stallspan(t, append([]string{"ls"}, args...)...)
		v.Env = append(v.Env, "STALLSPAN_SOCKET="+socket, "XDG_STATE_HOME="+agent.temp)
		code = v.run()
		return code, v.out.String() + v.err.String()
	}
	if code, got := list("--since", "1h"); code != 0 || strings.Count(got, begun.ID) != 1 {
		t.Errorf("of an agent: got exit code %d and\n%s, want the window once", code, got)
	}
	stop(t, agent)
	if code, got := list(); code != 1 {
		t.Errorf("without an agent: got exit code %d and\n%s, want 1", code, got)
	}
	if code, got := list("--since", "1h"); code != 0 || strings.Count(got, begun.ID) != 1 {
		t.Errorf("of files: got exit code %d and\n%s, want the window once", code, got)
	}
	if code, got := list("--since", "0s"); code != 0 || strings.Contains(got, begun.ID) {
		t.Errorf("since now: got exit code %d and\n%s, want no window", code, got)
	}
	if code, got := list("--since", "soon"); code != 2 || !strings.Contains(got, "--since \"soon\"") {
		t.Errorf("got exit code %d and\n%s, want a usage error", code, got)
	}
}
