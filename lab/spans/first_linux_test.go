package spans

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/processortest"
	"golang.org/x/sys/unix"

	stallspan "github.com/stallspan/stallspan/processor"
	"github.com/stallspan/stallspan/test/slowdisk"
)

const (
	fileSize  = 96 << 20
	diskSpeed = 32 << 20 // bytes a second
)

// slowFile is a file on a disk that is really slow.
func slowFile(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("reads a slow device for seconds")
	}
	if os.Geteuid() != 0 {
		t.Skip("needs root, for a slow device")
	}
	d, err := slowdisk.Open(t.Context(), slowdisk.SATA, slowdisk.Options{Size: 2 * fileSize, BytesPerSecond: diskSpeed})
	if err != nil {
		t.Skip("needs a slow device: ", err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	path := d.Dir + "/model"
	if err := os.WriteFile(path, make([]byte, fileSize), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.Slow(); err != nil {
		t.Fatal(err)
	}
	return path
}

func makeCold(t *testing.T, path string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if err := unix.Fsync(int(file.Fd())); err != nil {
		t.Fatal(err)
	}
	if err := unix.Fadvise(int(file.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		t.Fatal(err)
	}
}

// loaded starts a process that loads a file, and returns its number and when the load began and ended.
func loaded(t *testing.T, path string, wait, repeat time.Duration) (pid int, from, to time.Time) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), loads+"="+path, waits+"="+wait.String(), repeats+"="+repeat.String())
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var began, ended int64
	if _, err := fmt.Sscan(line, &began, &ended); err != nil {
		t.Fatalf("parse %q: %v", line, err)
	}
	return cmd.Process.Pid, time.Unix(0, began), time.Unix(0, ended)
}

func started(t *testing.T) (processor.Traces, *consumertest.TracesSink) {
	t.Helper()
	factory := stallspan.NewFactory()
	var next consumertest.TracesSink
	p, err := factory.CreateTraces(t.Context(), processortest.NewNopSettings(factory.Type()),
		factory.CreateDefaultConfig(), &next)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(t.Context(), componenttest.NewNopHost()); err != nil {
		t.Skipf("nothing of this machine can be read: %v", err)
	}
	t.Cleanup(func() { _ = p.Shutdown(t.Context()) })
	return p, &next
}

// loadSpan is what a program sends of a load of a model.
func loadSpan(pid int, from, to time.Time) ptrace.Traces {
	traces := ptrace.NewTraces()
	resource := traces.ResourceSpans().AppendEmpty()
	resource.Resource().Attributes().PutInt("process.pid", int64(pid))
	span := resource.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	span.SetName("model.load")
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(from))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(to))
	return traces
}

// The first span of a process that no one has announced is judged by what that process did.
func TestFirstSpan(t *testing.T) {
	path := slowFile(t)
	p, next := started(t)
	time.Sleep(2500 * time.Millisecond) // two lists of all processes
	for _, c := range []struct {
		name         string
		cold         bool
		wait, repeat time.Duration
		verdict      string
	}{
		{name: "cold, from the start of the process", cold: true, verdict: "storage_bound"},
		{name: "cold, after a while", cold: true, wait: 7 * time.Second, verdict: "storage_bound"},
		{name: "warm", wait: 300 * time.Millisecond, repeat: 3 * time.Second, verdict: "cpu_bound"},
		{name: "warm, after a while", wait: 7 * time.Second, repeat: 3 * time.Second, verdict: "cpu_bound"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got map[string]any
			// Sixteen programs that work more, such as other tests and compilers, may hold the places of candidates for 5 s,
			// or take the CPUs, so that the verdict is of those.
			good := func() bool {
				return got["stallspan.verdict"] == c.verdict && got["stallspan.window.scope"] == "process"
			}
			for end := time.Now().Add(2 * time.Minute); !good() && time.Now().Before(end); {
				if c.cold {
					makeCold(t, path)
				}
				pid, from, to := loaded(t, path, c.wait, c.repeat)
				next.Reset()
				if err := p.ConsumeTraces(t.Context(), loadSpan(pid, from, to)); err != nil {
					t.Fatal(err)
				}
				got = next.AllTraces()[0].ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0).Attributes().AsRaw()
			}
			if !good() {
				t.Errorf("got %v of the %v, want %s of the process: %v",
					got["stallspan.verdict"], got["stallspan.window.scope"], c.verdict, got)
			}
			t.Log(got["stallspan.finding"], got["stallspan.uncertainty.ratio"], got["stallspan.stall.storage.time"])
		})
	}
}
