package agent

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/agent/internal/events"
	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/test/fixture"
)

// Events of a GPU are shown, and handed to the action in the config. So are test events.
func TestEvents(t *testing.T) {
	t.Parallel()
	library := fixture.NVML(t)
	player := fixture.PlayGPU(t, "gpu 0 uuid=GPU-0\ngpu 1 uuid=GPU-1\n")
	folder, socket := t.TempDir(), socketIn(t)
	config := filepath.Join(folder, "config.yaml")
	user := "user: nobody, "
	if os.Geteuid() != 0 {
		user = ""
	}
	if err := os.WriteFile(config,
		[]byte("sampling: {nvml: "+library+"}\nactions:\n  - on: [stallspan.gpu.lost]\n    exec: {"+
			user+"command: [/bin/cat]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	v := stallspan(t, "agent", "--config", config)
	var said liveOutput
	v.Stderr = &said
	v.Env = append(v.Env, "STALLSPAN_SOCKET="+socket, "FAKENVML_FILE="+player.Path)
	v.start()
	said.until(t, 1, "windows are announced at "+socket)

	try := stallspan(t, "events", "test", "stallspan.gpu.lost")
	try.Env = append(try.Env, "STALLSPAN_SOCKET="+socket)
	var tried liveOutput
	try.Stdout = &tried
	if code := try.run(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	tried.until(t, 1, "log record: not exported: OTEL_EXPORTER_OTLP_ENDPOINT is not set")
	tried.until(t, 1, "exec /bin/cat: ok, exit status 0: {\"id\":")

	show := stallspan(t, "events", "--json")
	show.Env = append(show.Env, "STALLSPAN_SOCKET="+socket)
	var shown liveOutput
	show.Stdout = &shown
	show.start()
	shown.until(t, 1, `"test":true`)
	player.Write("gpu 0 uuid=GPU-0\ngpu 1 uuid=GPU-1\nlost 1\n")
	shown.until(t, 1, `"test":false`)
	for line := range strings.Lines(shown.String()) {
		var l events.Shown
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		if !l.Test && (l.Name != "stallspan.gpu.lost" || l.Severity != "ERROR" || l.Attributes["hw.id"] != "GPU-1") {
			t.Errorf("got %s, want a test event, or the lost GPU", line)
		}
	}
	if status, err := api.NewClient(socket).Status(t.Context()); err != nil ||
		strings.Contains(strings.Join(status.Problems, "\n"), "/bin/cat") {
		t.Errorf("got %v, %v, want no problem of an action", status.Problems, err)
	} else if len(status.GPUs) != 2 || status.GPUs[0].Status != "ok" || status.GPUs[1].ID != "GPU-1" ||
		status.GPUs[1].Status != "lost" || status.Export == nil || *status.Export != (api.ExportStatus{}) {
		t.Errorf("got %+v, want GPU-0, the lost GPU-1, and no export", status)
	}
	stop(t, v)
	if code := show.wait(); code != 1 { // its agent has ended
		t.Errorf("exit code %d", code)
	}
}

func TestEventsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		says string
		code int
	}{
		{[]string{"events", "tset"}, `unknown command "tset" (did you mean "test"?)`, 2},
		{[]string{"events", "--last", "300"}, "choose 0 to 256", 2},
		{[]string{"events", "test"}, "needs the name of an event", 2},
		{[]string{"events", "test", "stallspan.gpu.los"}, `there is no event "stallspan.gpu.los": the names are `, 2},
		{[]string{"events"}, "no agent answers at", 1},
	} {
		v := stallspan(t, c.args...)
		v.Env = append(v.Env, "STALLSPAN_SOCKET="+filepath.Join(t.TempDir(), "s"))
		var said liveOutput
		v.Stderr = &said
		if code := v.run(); code != c.code || !strings.Contains(said.String(), c.says) {
			t.Errorf("%v: exit code %d, %s", c.args, code, said.String())
		}
	}
}

// The slow windows of a run are events of the agent on its machine, with the user who reports them.
func TestEventsOfARun(t *testing.T) {
	t.Parallel()
	socket := socketIn(t)
	agent, _ := startAgent(t, socket)
	defer stop(t, agent)
	run := stallspan(t, "run", "--slow-epoch", "1ms", "--name", "handed", "--", "sh", "-c",
		"echo Epoch 1/2; sleep 0.3; echo Epoch 2/2; sleep 0.3")
	run.Env = append(run.Env, "STALLSPAN_SOCKET="+socket)
	if code := run.run(); code != 0 {
		t.Fatalf("run: got exit code %d: %s", code, &run.err)
	}
	events := stallspan(t, "events", "--once")
	events.Env = append(events.Env, "STALLSPAN_SOCKET="+socket)
	if code := events.run(); code != 0 {
		t.Fatalf("events: got exit code %d: %s", code, &events.err)
	}
	const want = `^\S+ \S+ WARN  stallspan.window.slow  epoch 1 of handed: .*\n\S+ \S+ WARN .* epoch 2 of handed: .*\n$`
	if got := events.out.String(); !regexp.MustCompile(want).MatchString(got) {
		t.Errorf("got %q, want both epochs: %s", got, want)
	}
}

// A run whose agent does not answer, or answers byte by byte for longer than a test may take, ends and says so in one
// line. It says nothing if there is no agent.
func TestEventsOfARunRefused(t *testing.T) {
	t.Parallel()
	never := func(net.Conn) {}
	slowly := func(c net.Conn) {
		for _, b := range []byte("HTTP/1.1 200 OK\r\nX-Long: " + strings.Repeat("x", 10_000)) {
			if _, err := c.Write([]byte{b}); err != nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	for _, test := range []struct {
		name   string
		answer func(net.Conn) // nil for no server
		lines  int
	}{{"silent", never, 1}, {"slow", slowly, 1}, {"none", nil, 0}} {
		socket := socketIn(t)
		if test.answer != nil {
			l, err := net.Listen("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			go func() {
				for c, err := l.Accept(); err == nil; c, err = l.Accept() {
					defer func() { _ = c.Close() }()
					go test.answer(c)
				}
			}()
		}
		run := stallspan(t, "run", "--slow-epoch", "1ms", "--", "sh", "-c", "echo Epoch 1/1; sleep 0.3")
		run.Env = append(run.Env, "STALLSPAN_SOCKET="+socket)
		code := run.run()
		if said := strings.Count(run.err.String(), socket); code != 0 || said != test.lines {
			t.Errorf("%s: got exit code %d, the socket in %d lines: %s, want 0 and %d", test.name, code, said, &run.err,
				test.lines)
		}
	}
}
