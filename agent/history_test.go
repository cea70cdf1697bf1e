package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/store"
	"github.com/stallspan/stallspan/test/golden"
)

// pastOfTest is the first moment of the history of tests.
var pastOfTest = time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)

// storedPast writes four hours of two GPUs, two disks and a job, with a slow window and an event.
func storedPast(t *testing.T) (folder string) {
	t.Helper()
	const step = 10 * time.Second // of stored intervals
	folder = filepath.Join(t.TempDir(), "history")
	w := store.New(store.Options{Folder: folder, MaxSize: store.DefaultMaxSize, MaxAge: store.DefaultMaxAge})
	err := w.Open()
	if err != nil {
		t.Fatal(err)
	}
	var columns, ofJob []store.Column
	for _, q := range store.Quantities {
		c := store.Column{Of: q.Of, Quantity: q.Name, Step: q.Step}
		switch q.Of {
		case store.Machine:
			columns = append(columns, c)
		case store.Job:
			c.ID = "process 7 of 99"
			ofJob = append(ofJob, c)
		default:
			for i := range 2 {
				c.ID, c.Name = fmt.Sprintf("GPU-%d", i), fmt.Sprintf("GPU %d", i)
				if q.Of == store.Disk {
					c.ID = fmt.Sprintf("nvme%dn1", i)
					c.Name = c.ID
				}
				columns = append(columns, c)
			}
		}
	}
	const n = 4 * 360
	for i := range n {
		at := pastOfTest.Add(time.Duration(i) * step)
		stalled := i >= n/2 && i < n/2+60 // ten minutes of slow storage
		w.Add(store.Devices, columns, at, step, valuesOf(columns, i, stalled))
		w.Add(store.Jobs, ofJob, at, step, valuesOf(ofJob, i, stalled))
		if i%6 == 5 {
			if i == n/2+59 {
				w.AddEntry(store.Entry{At: at, Text: json.RawMessage(`{"id":"8f1c2a90d3b7e645","kind":"epoch","epoch":3,` +
					`"start":"2026-11-22T12:00:00Z","end":"2026-11-22T12:10:00Z","duration_s":600,"verdict":"storage_bound",` +
					`"finding":"GPU 0 was busy 20 % of the time and waited for storage 70 %.","slow":true,` +
					`"gpu":{"ids":["GPU-0"],"busy_s":120,"busy_ratio":0.2},"stall":{"storage_s":420,"other_s":60}}`)})
				w.AddEntry(store.Entry{Kind: store.Event, At: at, Text: json.RawMessage(`{"name":"stallspan.disk.saturated",` +
					`"severity":"WARN","time":"2026-11-22T12:01:00Z","body":"nvme1n1 is saturated"}`)})
			}
			if err := w.Flush(sample.Stamp{Wall: at, Mono: at.Sub(pastOfTest)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(sample.Stamp{Wall: pastOfTest.Add(n * step), Mono: n * step}); err != nil {
		t.Fatal(err)
	}
	return folder
}

func valuesOf(columns []store.Column, i int, stalled bool) (values []float64) {
	for _, c := range columns {
		v := map[string]float64{
			store.Busy: 0.9, store.BusyMin: 0.8, store.BusyMax: 1, store.Power: 600, store.PowerMax: 650,
			store.Temperature: 66, store.MemoryUsed: 64 << 30, store.SMActive: 0.7, store.SMClock: 1.9e9,
			store.ReadBytes: 2e9, store.ReadBytesMax: 3e9, store.Reads: 16e3, store.ReadAwait: 4e-4,
			store.ReadAwaitMax: 9e-4, store.Queue: 6.4, store.QueueMax: 12, store.Utilization: 0.9,
			store.IOSome: 0.05, store.IOFull: 0.01, store.Cores: 6, store.BusiestCore: 0.9, store.Storage: 0.05,
		}[c.Quantity]
		if stalled {
			if factor, known := map[string]float64{store.Busy: 0.2, store.BusyMin: 0, store.Power: 0.4, store.ReadBytes: 0.1,
				store.Reads: 0.1, store.ReadAwait: 30, store.ReadAwaitMax: 50, store.IOSome: 12, store.Storage: 14,
				store.QueueMax: 8}[c.Quantity]; known {
				v *= factor
			}
		}
		values = append(values, v*(1-0.01*float64(i%6)))
	}
	return values
}

// historyCall runs the command in UTC.
func historyCall(t *testing.T, args ...string) *invocation {
	t.Helper()
	v := stallspan(t, append([]string{"history"}, args...)...)
	v.Env = append(v.Env, "TZ=UTC")
	return v
}

func TestHistoryOutput(t *testing.T) {
	t.Parallel()
	folder := storedPast(t)
	for name, args := range map[string][]string{
		"table.txt": {"--since", "2026-11-22T10:00", "--until", "2026-11-22T14:00"},
		"gpu.txt":   {"--since", "2026-11-22T11:55", "--until", "2026-11-22T12:15", "--series", "gpu,event"},
		"job.txt":   {"--since", "2026-11-22T11:55", "--until", "2026-11-22T12:15", "--series", "job"},
		"json.txt":  {"--since", "2026-11-22T11:50", "--until", "2026-11-22T12:20", "--step", "10m", "--json"},
		"empty.txt": {"--since", "2026-11-20T10:00", "--until", "2026-11-20T14:00"},
	} {
		v := historyCall(t, append(args, "--dir", folder)...)
		if code := v.run(); code != 0 || v.err.Len() > 0 {
			t.Errorf("%s: exit code %d, %s", name, code, &v.err)
		}
		golden.Check(t, filepath.Join("testdata", "history", name), v.out.Bytes())
	}
}

func TestHistoryRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args string
		code int
		want string
	}{
		{"--since 5x", 2, "--since \"5x\": give an age such as 2h or 3d"},
		{"--since +5x", 2, "give an age such as"},
		{"--since 1h --until 2h", 2, "is not before --until"},
		{"--series gpus", 2, "did you mean gpu?"},
		{"--series x", 2, "choose from machine, gpu, disk"},
		{"--step 15", 2, "choose a multiple of 10s"},
		{"--dir /nonexistent/history", 1, "there is no folder /nonexistent/history"},
		{"--dir " + t.TempDir(), 1, "has no history files: give --dir the folder"},
		{"", 1, "and there is no history in "},
	} {
		v := historyCall(t, strings.Fields(test.args)...)
		v.Env = append(v.Env, "STALLSPAN_SOCKET="+filepath.Join(v.temp, "none.sock"))
		if code := v.run(); code != test.code || !strings.Contains(v.err.String(), test.want) {
			t.Errorf("history %s: exit code %d, %s; want %d and %q", test.args, code, &v.err, test.code, test.want)
		}
	}
}

// The agent answers with what is not in its files yet.
func TestHistoryOfAnAgent(t *testing.T) {
	t.Parallel()
	socket := socketIn(t)
	agent, _ := startAgent(t, socket)
	test := stallspan(t, "events", "test", "stallspan.gpu.lost")
	test.Env = append(test.Env, "STALLSPAN_SOCKET="+socket)
	if code := test.run(); code != 0 {
		t.Fatalf("exit code %d: %s", code, &test.err)
	}
	ask := func() *invocation {
		v := historyCall(t, "--since", "10m", "--json")
		v.Env = append(v.Env, "STALLSPAN_SOCKET="+socket, "XDG_STATE_HOME="+agent.temp)
		_ = v.run()
		return v
	}
	early := historyCall(t, "--since", "10m", "--series", "job")
	early.Env = append(early.Env, "STALLSPAN_SOCKET="+socket, "XDG_STATE_HOME="+agent.temp)
	for end := time.Now().Add(slowest); early.run() != 0; early.out.Reset() { // before the first round it has no writer
		if time.Now().After(end) {
			t.Fatalf("got %s", &early.err)
		}
		time.Sleep(500 * time.Millisecond)
		again := historyCall(t, "--since", "10m", "--series", "job")
		again.Env, early = early.Env, again
	}
	if got := strings.Join(strings.Fields(early.out.String()), " "); !strings.Contains(got, "but an agent runs now") {
		t.Errorf("of a new agent: got %s, want that an agent runs", got)
	}
	v := ask()
	for end := time.Now().Add(slowest); !strings.Contains(v.out.String(), "stallspan.gpu.lost"); v = ask() {
		if time.Now().After(end) {
			t.Fatalf("got %s%s, want the event", &v.out, &v.err)
		}
		time.Sleep(500 * time.Millisecond)
	}
	stop(t, agent)
	v = ask()
	if !strings.Contains(v.out.String(), "stallspan.gpu.lost") || !strings.Contains(v.err.String(), "no agent answers") {
		t.Errorf("without the agent: got %s%s, want the event from the files", &v.out, &v.err)
	}
}

// Another user gets an error that says what to do.
func TestHistoryOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become another user")
	}
	folder := storedPast(t)
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	public, err := os.MkdirTemp("", "sp")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(public) }()
	own := filepath.Join(public, "stallspan")
	if err := os.WriteFile(own, program, 0o755); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(public, "history")
	if err := os.Rename(folder, state); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(public, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(own, "history", "--dir", state, "--since", "7d")
	cmd.Env = []string{actAs + "=stallspan", "PATH=" + os.Getenv("PATH")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "is for its owner") {
		t.Errorf("got %s, %v, want what to do", out, err)
	}
}
