package collector

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/stallspan/stallspan/test/fixture"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// timeout is far more than a test needs on a busy machine.
const timeout = time.Minute

// collector is a process of build/otelcol-stallspan.
type collector struct {
	*exec.Cmd
	t      *testing.T
	log    *logBuffer
	temp   string // folder of the socket, whose path has at most 107 bytes
	output string // where file.yaml writes
	otlp   string // host:port over gRPC
	http   string // host:port over HTTP
	ended  chan struct{}
	exit   error // when ended is closed
}

// built returns the path of a program below build. It skips the test unless `make end-to-end` has built the program.
func built(t *testing.T, name string) string {
	t.Helper()
	if os.Getenv("STALLSPAN_END_TO_END") == "" {
		t.Skipf("make end-to-end builds build/%s and runs this test", name)
	}
	path, err := filepath.Abs(filepath.Join("../../build", name))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("run make end-to-end, which builds it: %v", err)
	}
	return path
}

// prepare returns a Collector with args and a clean environment.
func prepare(t *testing.T, args ...string) *collector {
	t.Helper()
	program := built(t, "otelcol-stallspan")
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	t.Cleanup(cancel)
	temp, err := os.MkdirTemp("", "st")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(temp) })
	c := &collector{Cmd: exec.CommandContext(ctx, program, args...), t: t, temp: temp, log: &logBuffer{},
		ended: make(chan struct{})}
	c.output, c.otlp, c.http = filepath.Join(temp, "out"), fixture.FreePort(t), fixture.FreePort(t)
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "OTEL_") && !strings.HasPrefix(pair, "STALLSPAN_") {
			c.Env = append(c.Env, pair)
		}
	}
	c.set("K8S_NODE_NAME", "node-1")
	c.set("STALLSPAN_SOCKET", c.socket())
	c.set("OTLP_GRPC", c.otlp)
	c.set("OTLP_HTTP", c.http)
	c.set("OWN_METRICS_PORT", port(fixture.FreePort(t)))
	c.set("OUTPUT", c.output)
	c.set("COLLECTION_INTERVAL", "1s")
	c.Stdout, c.Stderr = c.log, c.log
	return c
}

// port returns the port of an address.
func port(address string) string { return address[strings.LastIndex(address, ":")+1:] }

func (c *collector) set(name, value string) { c.Env = append(c.Env, name+"="+value) }

func (c *collector) socket() string { return filepath.Join(c.temp, "s") }

// start starts the Collector and waits until it is ready.
func (c *collector) start() *collector {
	c.t.Helper()
	c.begin()
	c.until("the Collector is ready", func() bool {
		select {
		case <-c.ended:
			c.t.Fatalf("the Collector did not start: %v\n%s", c.exit, c.log)
		default:
		}
		return strings.Contains(c.log.String(), "Everything is ready")
	})
	return c
}

// begin starts the process, and kills it when the test ends.
func (c *collector) begin() {
	c.t.Helper()
	if err := c.Start(); err != nil {
		c.t.Fatal(err)
	}
	go func() {
		c.exit = c.Wait()
		close(c.ended)
	}()
	c.t.Cleanup(func() {
		_ = c.Process.Kill()
		<-c.ended
		if c.t.Failed() {
			c.t.Logf("log of the Collector:\n%s", c.log)
		}
	})
}

// stop ends the Collector with SIGTERM and checks its exit code.
func (c *collector) stop() {
	c.t.Helper()
	_ = c.Process.Signal(syscall.SIGTERM)
	<-c.ended // the context of prepare bounds this
	if c.exit != nil {
		c.t.Errorf("exit after SIGTERM: got %v, want no error", c.exit)
	}
}

// refused runs a Collector that must end with an error by itself, and returns its log.
func (c *collector) refused() string {
	c.t.Helper()
	c.begin()
	<-c.ended
	if c.ProcessState.ExitCode() != 1 {
		c.t.Errorf("exit code: got %d, want 1; log:\n%s", c.ProcessState.ExitCode(), c.log)
	}
	return c.log.String()
}

// until waits until done returns true.
func (c *collector) until(what string, done func() bool) {
	c.t.Helper()
	for end := time.Now().Add(timeout / 2); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("not within %v: %s", timeout/2, what)
		}
	}
}

// logBuffer is a log that may be read while it is written.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *logBuffer) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

func (r *logBuffer) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}
