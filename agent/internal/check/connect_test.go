package check

import (
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/agent/internal/export"
)

func target(signal, variable, network, address, proxy string) export.Target {
	return export.Target{Signal: signal, Variable: variable, Network: network, Address: address, Proxy: proxy}
}

func expect(t *testing.T, found []Finding, state State, says, fix string) {
	t.Helper()
	if len(found) != 1 || found[0].State != state || !strings.Contains(found[0].Message, says) ||
		!strings.Contains(found[0].Fix, fix) {
		t.Errorf("not %s, %q, %q: %+v", state, says, fix, found)
	}
}

func socketPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "st") // short: a socket's path has 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "s.sock")
}

func TestExport(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	open := listener.Addr().String()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	unused := closed.Addr().String()
	_ = closed.Close()
	defer func() { _ = listener.Close() }()
	path := socketPath(t)
	unix, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close() }()

	look := func(m machine) []Finding { return m.export(t.Context()) }
	expect(t, look(machine{}), Off, "No telemetry is exported", "OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4317")
	expect(t, look(machine{Options: Options{ExportError: errors.New("OTEL_X is wrong")}}), Missing, "OTEL_X is wrong",
		"unset")
	to := func(targets ...export.Target) machine { return machine{Options: Options{Export: targets}} }
	both := to(target("traces", "V", "tcp", open, ""), target("metrics", "V", "tcp", open, ""))
	expect(t, look(both), Seen, "Traces and metrics go to "+open, "")
	expect(t, look(to(target("metrics", "V", "tcp", unused, ""))), Missing, "nothing listens there",
		"set V to where it is")
	expect(t, look(to(target("metrics", "V", "tcp", "198.51.100.1:4317", open))), Seen, "through the proxy "+open, "")
	expect(t, look(to(target("traces", "V", "unix", path, ""))), Seen, path, "")
	expect(t, look(to(target("traces", "V", "", "", ""))), Seen, "go to the target in V, which was not tried", "")
	if apart := look(to(target("traces", "V", "tcp", open, ""),
		target("metrics", "W", "tcp", unused, ""))); len(apart) != 2 ||
		apart[0].State != Seen || apart[1].State != Missing {
		t.Errorf("got %+v, want one finding seen and one missing", apart)
	}
}

func TestAgent(t *testing.T) {
	look := func(path string) []Finding {
		m := machine{Options: Options{Socket: path}}
		return m.agent(t.Context())
	}
	path := socketPath(t)
	expect(t, look(path), Off, "No agent or Collector runs at", "stallspan agent")
	expect(t, look(filepath.Join(filepath.Dir(path), "a/folder/that/is/not/there/s.sock")), Off,
		"No agent or Collector runs at", "stallspan agent")

	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	expect(t, look(path), Missing, "is not a socket", "STALLSPAN_SOCKET")
	_ = os.Remove(path)

	if err := os.Chmod(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	expect(t, look(path), Limited, "anyone may replace", "chmod o-w "+filepath.Dir(path))
	if err := os.Chmod(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}

	silent, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	expect(t, look(path), Missing, "does not answer", "start the agent or the Collector again")
	if l, ok := silent.(*net.UnixListener); ok {
		l.SetUnlinkOnClose(false)
	}
	_ = silent.Close()
	expect(t, look(path), Off, "has exited and left its socket", "stallspan agent")
	_ = os.Remove(path)

	for answer, want := range map[string]struct {
		state State
		says  string
	}{
		`{"version": "v1.2.3", "windows_open": 1, "problems": []}`: {Seen,
			"Stallspan v1.2.3 answers on " + path + ", with 1 window open."},
		`{"version": "v1.2.3", "uptime_s": 90, "disks": ["sda"], "gpus": [], "problems": []}`: {
			Seen, "It has run for 1m30s, and reads 1 disk and 0 GPUs."},
		`{"version": "v1.2.3", "export": {"enabled": true}, "problems": []}`: {Seen,
			"The agent's telemetry arrives; it has lost 0 spans and log records."},
		`{"version": "v1.2.3", "export": {"enabled": false}, "problems": []}`: {Off, "The agent exports no telemetry"},
		`{"version": "v1.2.3", "export": {"enabled": true, "failing": "refused"}, "problems": []}`: {Limited,
			"The agent's telemetry does not arrive: refused."},
		`{"version": "v1.2.3", "windows_open": 0, "problems": ["disk: gone", "more"]}`: {Limited,
			"Its first warning: disk: gone."},
		`<html>`: {Missing, "is not stallspan"},
		`{}`:     {Missing, "is not stallspan"},
	} {
		serve(t, path, answer, func() {
			found := look(path)
			expect(t, found[len(found)-1:], want.state, want.says, "") // of its export, if the answer has that
		})
	}
}

// serve answers every request on a socket while do runs.
func serve(t *testing.T, path, answer string, do func()) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/v1/status" {
			t.Errorf("got %s %s, want GET /v1/status", r.Method, r.URL.Path)
		}
		_, _ = w.Write([]byte(answer))
	})}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	do()
	_ = server.Close()
	<-done
}
