package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/stallspan/stallspan/internal/emit"
	"github.com/stallspan/stallspan/internal/identity/locate"
	"github.com/stallspan/stallspan/internal/progress/follow"
	"github.com/stallspan/stallspan/internal/windows"
)

// unsent is a span that goes nowhere.
type unsent struct{}

func (unsent) End(emit.Span)                  {}
func (unsent) Drop()                          {}
func (unsent) SpanContext() trace.SpanContext { return trace.SpanContext{} }
func (unsent) Exemplar() trace.SpanContext    { return trace.SpanContext{} }

// logBody is a request with lines of a file, each so long before now.
func logBody(t *testing.T, now time.Time, file string, lines map[time.Duration]string) string {
	t.Helper()
	attribute := map[string]any{"key": "log.file.path", "value": map[string]string{"stringValue": file}}
	var records []any
	for ago := 10 * time.Minute; ago >= 0; ago -= 100 * time.Millisecond {
		if text, ok := lines[ago]; ok {
			records = append(records, map[string]any{"body": map[string]string{"stringValue": text},
				"timeUnixNano": strconv.FormatInt(now.Add(-ago).UnixNano(), 10), "attributes": []any{attribute}})
		}
	}
	scope := map[string]any{"logRecords": records}
	body, err := json.Marshal(map[string]any{"resourceLogs": []any{map[string]any{"scopeLogs": []any{scope}}}})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// writesLog serves logs, and starts a process that has a file open for writing.
func writesLog(t *testing.T) (s *service, file string, job *exec.Cmd) {
	t.Helper()
	s = serve(t, func(s *Server) {
		logs := follow.NewLogs(s.monitor, s.monitor.Windows.NewClient(windows.Options{Durations: &emit.Durations{},
			Spans: func(string, time.Time, trace.SpanContext) windows.Span { return unsent{} }}))
		t.Cleanup(logs.Close)
		s.windows = logs
	})
	untilKnown(t, s)
	file = filepath.Join(t.TempDir(), "train.log")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	job = exec.Command("sleep", "600")
	job.Stdout = out
	if err := job.Start(); err != nil {
		t.Fatal(err)
	}
	_ = out.Close()
	t.Cleanup(func() { _ = job.Process.Kill(); _ = job.Wait() })
	time.Sleep(3 * time.Second) // the history begins before the lines
	return s, file, job
}

// An epoch whose end is not printed ends with its program, and not when that is no longer waited for.
func TestLastEpochOfALog(t *testing.T) {
	s, file, job := writesLog(t)
	now := time.Now()
	lines := map[time.Duration]string{2 * time.Second: "Epoch 1/2", time.Second: "Epoch 2/2"}
	if status, _, got := s.do(t, http.MethodPost, "/v1/logs", logBody(t, now, file, lines)); status != http.StatusOK {
		t.Fatalf("got %d %s", status, got)
	}
	_ = job.Process.Kill()
	_ = job.Wait()
	ended := time.Now()
	for end := ended.Add(30 * time.Second); len(s.monitor.Windows.Ended()) < 2; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("got %d epochs, want 2", len(s.monitor.Windows.Ended()))
		}
	}
	last := s.monitor.Windows.Ended()[1]
	want := ended.Sub(now.Add(-time.Second))
	if off := last.Duration() - want; last.Epoch != 2 || off < -100*time.Millisecond || off > lateLooks {
		t.Errorf("got epoch %d of %v, want 2, and %v until the program's end", last.Epoch, last.Duration(), want)
	}
}

// lateLooks is how much later a busy server may see that a program has ended: less than it waits for last lines.
const lateLooks = 1500 * time.Millisecond

// The epochs in a file are windows of the process that writes it, at the times of the lines. The last one ends with its
// line, although only the program's end shows that it was the last.
func TestEpochsOfALog(t *testing.T) {
	s, file, job := writesLog(t)
	now := time.Now()
	send := func(file string, lines map[time.Duration]string) string {
		status, _, got := s.do(t, http.MethodPost, "/v1/logs", logBody(t, now, file, lines))
		if status != http.StatusOK {
			t.Fatalf("got %d %s", status, got)
		}
		return strings.TrimSpace(got)
	}
	if got := send(file, map[time.Duration]string{2500 * time.Millisecond: "Epoch 1/2 starts",
		1500 * time.Millisecond: "Epoch 1/2 done, loss 0.4", time.Second: "Epoch 2/2 starts"}); got != "{}" {
		t.Errorf("got %s, want all lines read", got)
	}
	late := map[time.Duration]string{0: "Epoch 2/2 done, loss 0.3", 6 * time.Minute: "Epoch 1/2"}
	if got := send(file, late); !strings.Contains(got, `"rejectedLogRecords":"1"`) {
		t.Errorf("got %s, want the old line rejected", got)
	}
	if got := send("/etc/passwd", map[time.Duration]string{0: "Epoch 1/2 starts"}); !strings.Contains(got,
		`"rejectedLogRecords":"1"`) {
		t.Errorf("got %s, want the line of no process rejected", got)
	}
	_ = job.Process.Kill()
	_ = job.Wait()
	var got string
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		got = ""
		for _, r := range s.monitor.Windows.Ended() {
			got += fmt.Sprintf("epoch %d of %d: %.1f s; ", r.Epoch, r.PID, r.Duration().Seconds())
		}
		if strings.Count(got, ";") == 2 {
			break
		}
	}
	pid := job.Process.Pid
	if want := fmt.Sprintf("epoch 1 of %d: 1.0 s; epoch 2 of %d: 1.0 s; ", pid, pid); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if status, _, got := s.do(t, http.MethodPost, "/v1/logs", `{"resourceLogs": 3}`); status != http.StatusBadRequest {
		t.Errorf("got %d %s, want 400", status, got)
	}
}

// Lines of a process are read for its user alone.
func TestLogsOfAnUnknownCaller(t *testing.T) {
	address := serveTCP(t, "")
	answer, err := http.Post("http://"+address+"/v1/logs", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusForbidden {
		t.Errorf("got %d, want 403", answer.StatusCode)
	}
}

// Of a file that several users write, a caller's lines are those of his own process, also when that has ended. Those of
// another user's file are no one's, whether its process runs or not.
func TestLogsOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to run programs as other users")
	}
	servers := make(chan *Server, 1) // they are set up by another goroutine
	untilKnown(t, serve(t, func(s *Server) { servers <- s }))
	server := <-servers
	start := func(attributes *syscall.SysProcAttr, files ...string) (end func(), pid int) {
		cmd := exec.Command("sleep", "600")
		cmd.SysProcAttr = attributes
		for _, file := range files {
			out, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = out.Close() }()
			cmd.ExtraFiles = append(cmd.ExtraFiles, out)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		end = sync.OnceFunc(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		t.Cleanup(end)
		return end, cmd.Process.Pid
	}
	shared, private := filepath.Join(t.TempDir(), "shared.log"), filepath.Join(t.TempDir(), "private.log")
	endRoot, root := start(nil, shared, private)
	other := &syscall.Credential{Uid: 65534, Gid: 65534}
	endUser, user := start(&syscall.SysProcAttr{Credential: other}, shared)
	who := &caller{uid: 65534, name: server.callers.owners.Of(user).Client}
	check := func(when string, who *caller, file string, want int) {
		t.Helper()
		var all otlpLogs
		body := logBody(t, time.Now(), file, map[time.Duration]string{0: "Epoch 1/2"})
		if err := json.Unmarshal([]byte(body), &all); err != nil {
			t.Fatal(err)
		}
		lines, left := server.linesOf(&all, who)
		if got := len(lines[want]) == 1 && left == 0; got != (want > 0) || len(lines) > 1 {
			t.Errorf("%s: got lines of %v and %d left out, want those of process %d", when, lines, left, want)
		}
	}
	check("the user's", who, shared, user)
	check("another user's", who, private, 0)
	check("root's", &caller{}, private, root)
	endRoot()
	check("another user's, ended", who, private, 0)
	endUser()
	check("the user's, ended", who, shared, user)
	check("unknown caller", &caller{uid: -1, name: locate.Unknown}, shared, 0)
}
