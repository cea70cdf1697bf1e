package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stallspan/stallspan/agent/internal/check"
	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/internal/monitor/follow"
	"github.com/stallspan/stallspan/test/fixture"
)

// runCheck runs check and returns its findings. It leaves no cgroup behind.
func runCheck(t *testing.T, v *invocation) (code int, report check.Report) {
	t.Helper()
	code = v.run()
	if _, own, err := follow.OwnCgroup(); err == nil {
		left, err := filepath.Glob(filepath.Join(own, fmt.Sprintf("stallspan-check-%d-*", v.Process.Pid)))
		if err != nil || len(left) > 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
	}
	decoder := json.NewDecoder(&v.out)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&report); err != nil {
		t.Fatalf("exit code %d, %v: %s", code, err, v.err.String())
	}
	if v.err.Len() > 0 || report.Summary == "" || report.Essential != (code == 0) {
		t.Errorf("exit code %d, %q: %+v", code, v.err.String(), report)
	}
	return code, report
}

func findingOf(t *testing.T, r *check.Report, area check.Area) check.Finding {
	t.Helper()
	i := slices.IndexFunc(r.Findings, func(f check.Finding) bool { return f.Area == area })
	if i < 0 {
		t.Fatalf("got no finding of %s in %+v", area, r.Findings)
	}
	return r.Findings[i]
}

func TestCheck(t *testing.T) {
	t.Parallel()
	v := stallspan(t, "check", "--json")
	v.Env = append(v.Env, "STALLSPAN_SOCKET="+socketIn(t))
	code, report := runCheck(t, v)
	if code != 0 {
		t.Errorf("exit code %d: %+v", code, report)
	}
	if f := findingOf(t, &report, check.API); f.State != check.Off ||
		f.Fix != "stallspan agent # or a Collector with the receiver stallspan" {
		t.Errorf("got %+v, want off, with the command of the agent as the fix", f)
	}
	if f := findingOf(t, &report, check.Export); f.State != check.Off ||
		!strings.HasPrefix(f.Fix, "export OTEL_EXPORTER_OTLP_ENDPOINT=") {
		t.Errorf("got %+v, want off, with the OTLP endpoint as the fix", f)
	}
}

// check and run agree on the cgroup.
func TestCheckAgreesWithRun(t *testing.T) {
	_, report := runCheck(t, stallspan(t, "check", "--json"))
	run := stallspan(t, "run", "--", "cat", "/proc/self/cgroup")
	if code := run.run(); code != 0 {
		t.Fatalf("got %s, want exit code 0", run.err.String())
	}
	if f := findingOf(t, &report, check.Cgroup); (f.State == check.Seen) != strings.Contains(run.out.String(),
		"/stallspan-run-") {
		t.Errorf("%+v, and run had %s", f, run.out.String())
	}
}

// Without privileges all checks run, and nothing is created.
func TestCheckWithoutRights(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to give up what it may do; as another user every test here runs without")
	}
	v := stallspan(t, "check", "--json")
	copied := filepath.Join(v.temp, "program")
	if err := exec.Command("cp", os.Args[0], copied).Run(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{copied, v.temp} {
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	v.Path, v.Dir = copied, "/"
	v.SysProcAttr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	code, report := runCheck(t, v)
	if code != 0 {
		t.Errorf("exit code %d: %+v", code, report)
	}
	if f := findingOf(t, &report, check.Cgroup); f.State != check.Limited || f.Fix == "" {
		t.Errorf("got %+v, want limited, with a fix", f)
	}
	if f := findingOf(t, &report, check.Processes); f.Details["own_io"] != true {
		t.Errorf("got %+v, want the I/O counters of the own process", f)
	}
}

func TestCheckFindsAgentAndBackend(t *testing.T) {
	t.Parallel()
	socket := socketIn(t)
	running, _ := startAgent(t, socket)
	b := serveBackend(t)
	v := stallspan(t, "check", "--json")
	v.Env = append(v.Env, "STALLSPAN_SOCKET="+socket, "OTEL_EXPORTER_OTLP_ENDPOINT=http://"+b.address)
	_, report := runCheck(t, v)
	if f := findingOf(t, &report, check.API); !strings.Contains(f.Message, "answers on "+socket) {
		t.Errorf("got %+v, want an answer on the socket", f)
	}
	f := findingOf(t, &report, check.Export)
	if f.State != check.Off || !strings.Contains(f.Message, "The agent exports no") {
		t.Errorf("got %+v, want an agent without a backend", f)
	}
	if !slices.ContainsFunc(report.Findings, func(f check.Finding) bool {
		return f.Area == check.Export && f.State == check.Seen && strings.Contains(f.Message, b.address)
	}) {
		t.Errorf("got %+v, want a backend of this shell that accepts connections", report.Findings)
	}
	stop(t, running)
}

// With an empty root nothing can be read.
func TestCheckOfNothing(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, "sampling:\n  root_path: %s\n", t.TempDir()), 0o600); err != nil {
		t.Fatal(err)
	}
	code, report := runCheck(t, stallspan(t, "check", "--json", "--config", config))
	if code != cli.ExitFailed || report.Essential {
		t.Errorf("exit code %d: %+v", code, report)
	}
}

func TestCheckOfGPUs(t *testing.T) {
	t.Parallel()
	library := fixture.NVML(t)
	for plays, want := range map[string]struct {
		state     check.State
		says, fix string
		splits    bool
	}{
		"gpu 0 name=\"Test GPU\"": {check.Seen, "GPU 0, Test GPU", "", true},
		"devices 0":               {check.Missing, "lists no GPU", "", false},
		"init_error 9":            {check.Missing, "is not loaded.", " ", false},
		"init_error 18":           {check.Missing, "different versions.", "sudo reboot", false},
		"init_error 999":          {check.Missing, "NVML error 999.", "nvidia-smi", false},
		"gpu 0 name=A\nerror call=nvmlDeviceGetPowerUsage code=3": {check.Seen, "does not report: power", "", true},
		"hang call=nvmlInit_v2 seconds=60": {check.Missing, "did not answer within",
			"nvidia-smi -pm 1", false},
	} {
		t.Run(plays, func(t *testing.T) {
			t.Parallel()
			v := stallspan(t, "check", "--json").withGPU(library, fixture.PlayGPU(t, plays))
			_, report := runCheck(t, v)
			f := findingOf(t, &report, check.GPU)
			if f.State != want.state || !strings.Contains(f.Message, want.says) || !strings.Contains(f.Fix, want.fix) {
				t.Errorf("got %+v, want %v, %q with the fix %q", f, want.state, want.says, want.fix)
			}
			if strings.Contains(report.Summary, "GPU time here") != want.splits {
				t.Errorf("got %s, want a summary with GPU time only if it can be split", report.Summary)
			}
		})
	}
}
