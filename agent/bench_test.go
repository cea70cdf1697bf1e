package agent

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stallspan/stallspan/agent/internal/bench"
	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/state/ceiling"
	"github.com/stallspan/stallspan/internal/window"
)

// benchFile makes a file that is large enough to measure.
func benchFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "data")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	text := bytes.Repeat([]byte("stallspan "), 1<<20/10)
	for range 65 {
		if _, err := file.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.Sync(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// The real program measures a file, and keeps the result where it says.
func TestBench(t *testing.T) {
	t.Parallel()
	path := benchFile(t)
	v := stallspan(t, "bench", path, "--step", "50ms", "--json", "--seed", "5")
	v.Env = append(v.Env, "STALLSPAN_SOCKET="+socketIn(t))
	if code := v.run(); code != 0 {
		t.Fatalf("exit code %d: %s", code, v.err.String())
	}
	var r bench.Report
	decoder := json.NewDecoder(&v.out)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&r); err != nil {
		t.Fatal(err)
	}
	if r.Path != path || r.Seed != 5 || len(r.Random) != 6 || r.Sequential <= 0 || r.Cached <= 0 ||
		r.Ceiling < r.Sequential {
		t.Errorf("got %+v, want all steps of this path and seed", r)
	}
	if r.KeptIn == "" {
		t.Logf("not kept: %v", r.Notes)
		return
	}
	all, err := ceiling.Load(filepath.Join(v.temp, "stallspan", "ceilings.json"))
	if err != nil || len(all) != 1 || all[0].Disk != r.Device || all[0].Identity != r.Identity ||
		all[0].Read != r.Ceiling || all[0].Await != r.Await() {
		t.Errorf("got %+v, %v, want one ceiling, equal to the result", all, err)
	}
}

// An open window stops it, except with --force.
func TestBenchDuringWindow(t *testing.T) {
	t.Parallel()
	path, socket := benchFile(t), socketIn(t)
	agent, _ := startAgent(t, socket)
	measure := func(flags ...string) (int, *invocation) {
		v := stallspan(t, append([]string{"bench", path, "--step", "50ms", "--baseline", "off"}, flags...)...)
		v.Env = append(v.Env, "STALLSPAN_SOCKET="+socket)
		return v.run(), v
	}
	if code, v := measure(); code != 0 || !strings.Contains(v.out.String(), "Not kept") {
		t.Errorf("with an agent without windows: got exit code %d, %s%s; want 0", code, v.err.String(), v.out.String())
	}
	client := api.NewClient(socket)
	begun, err := client.Begin(t.Context(), api.Announcement{Kind: window.Epoch})
	if err != nil {
		t.Fatal(err)
	}
	if code, v := measure(); code != cli.ExitFailed || !strings.Contains(v.errorLine(), "--force") || v.out.Len() > 0 {
		t.Errorf("with an open window: got exit code %d, %s; want 1", code, v.err.String())
	}
	if code, v := measure("--force"); code != 0 {
		t.Errorf("forced: %d, %s", code, v.err.String())
	}
	if _, err := client.End(t.Context(), begun.ID); err != nil {
		t.Error(err)
	}
	stop(t, agent)
}

// The window of a stallspan run with the same folder for temporary files counts, too.
func TestBenchDuringRun(t *testing.T) {
	t.Parallel()
	run := stallspan(t, "run", "--", "sleep", "60")
	run.start()
	defer func() {
		_ = run.Process.Signal(syscall.SIGTERM)
		run.wait()
	}()
	sockets := filepath.Join(run.temp, "stallspan-*", "api.sock")
	for end := time.Now().Add(slowest / 2); ; time.Sleep(10 * time.Millisecond) {
		if found, _ := filepath.Glob(sockets); len(found) > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the run serves nothing")
		}
	}
	time.Sleep(200 * time.Millisecond) // its window begins then
	v := stallspan(t, "bench", os.Args[0])
	v.Env = append(v.Env, "TMPDIR="+run.temp, "STALLSPAN_SOCKET="+socketIn(t))
	if code := v.run(); code != cli.ExitFailed || !strings.Contains(v.errorLine(), "a window is open") {
		t.Errorf("got %d, %s, want exit code 1 for an open window", code, v.err.String())
	}
}

func TestBenchWrongly(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"bench needs a disk": {}, "--make-file needs": {"a", "--make-file"}, "bench reads one disk": {"sda", "sdb"},
	} {
		v := stallspan(t, append([]string{"bench"}, args...)...)
		if code := v.run(); code != cli.ExitUsage || !strings.Contains(v.errorLine(), want) {
			t.Errorf("%v: got %d, %s, want a usage error", args, code, v.err.String())
		}
	}
	for want, args := range map[string][]string{
		"there is no disk, file or folder /dev/nosuchdisk: lsblk lists": {"/dev/nosuchdisk"},
		"there is no disk, file or folder nosuchfile":                   {"nosuchfile"},
	} {
		v := stallspan(t, append([]string{"bench"}, args...)...)
		v.Env = append(v.Env, "STALLSPAN_SOCKET="+socketIn(t))
		if code := v.run(); code != cli.ExitFailed || !strings.Contains(v.errorLine(), want) {
			t.Errorf("%v: got %d, %s, want exit code 1 and %q", args, code, v.err.String(), want)
		}
	}
}

// ^C ends it with what was measured until then.
func TestBenchInterrupted(t *testing.T) {
	t.Parallel()
	v := stallspan(t, "bench", benchFile(t), "--step", "2s", "--json")
	v.Env = append(v.Env, "STALLSPAN_SOCKET="+socketIn(t))
	v.start()
	time.Sleep(4 * time.Second)
	if err := v.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := v.wait(); code != cli.ExitSignalBase+2 {
		t.Errorf("exit code %d: %s", code, v.err.String())
	}
	var r bench.Report
	if v.out.Len() == 0 {
		return // it was too slow to have measured anything
	}
	if err := json.Unmarshal(v.out.Bytes(), &r); err != nil || !r.Interrupted || len(r.Random) == 6 {
		t.Errorf("got %+v, %v, want an interrupted result without all depths", r, err)
	}
}
