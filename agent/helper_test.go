//go:build amd64 || arm64

package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/api"
	"github.com/stallspan/stallspan/internal/source/bpf"
)

// otherVictim is a third user, whose processes the agent's user may not trace.
const otherVictim = 65533

// startVictim starts a program as the third user.
func startVictim(t *testing.T, program string, args ...string) (pid int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: otherVictim, Gid: otherVictim}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	return cmd.Process.Pid
}

// problemsAfter are those of an agent after a window of a process, and whether it may read other users' processes.
func problemsAfter(t *testing.T, socket string, pid int) (problems string, others bool) {
	t.Helper()
	_, status := watched(t, socket, pid, 300*time.Millisecond)
	return strings.Join(status.Problems, "\n"), status.Rights.OtherUsers
}

// watched has an agent watch a process, and returns the evidence of its report. The client of package api would refuse
// this socket: the other user might have made its folder.
func watched(t *testing.T, socket string, pid int, length time.Duration) (evidence string, status api.Status) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}}}
	call := func(method, path, body string, into any) {
		request, err := http.NewRequestWithContext(t.Context(), method, "http://localhost"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = answer.Body.Close() }()
		if err := json.NewDecoder(answer.Body).Decode(into); err != nil || answer.StatusCode >= http.StatusBadRequest {
			t.Fatalf("%s %s: got %s, %v", method, path, answer.Status, err)
		}
	}
	var begun, report struct {
		ID, Evidence string
		NoSchedule   string `json:"no_schedule"`
	}
	call(http.MethodPost, "/v1/windows", fmt.Sprintf(`{"kind":"custom","name":"other","pid":%d}`, pid), &begun)
	time.Sleep(length)
	call(http.MethodPost, "/v1/windows/"+begun.ID+"/end", "", &report)
	call(http.MethodGet, "/v1/status", "", &status)
	return strings.TrimSpace(report.Evidence + " " + report.NoSchedule), status
}

// The agent of a service has no capabilities. Its helper reads other users' processes, and is started again.
func TestAgentSeparatesPrivileges(t *testing.T) {
	folder := openFolder(t)
	program := copyOf(t, filepath.Join(folder, "stallspan"))
	victim := startVictim(t, "sleep", "900")
	const denied = "the bytes that some processes read are not known"
	for _, caps := range [][]uintptr{nil, {unix.CAP_DAC_READ_SEARCH, unix.CAP_SYS_PTRACE}} {
		v := asOther(t, program, "agent")
		v.SysProcAttr.AmbientCaps = caps
		socket := filepath.Join(v.temp, "s.sock")
		v.Env = append(v.Env, "STALLSPAN_SOCKET="+socket, "STALLSPAN_SCHEDULE=off")
		var out liveOutput
		v.Stderr = &out
		v.start()
		out.until(t, 1, "windows are announced at "+socket)
		// The sets inheritable, permitted, effective and ambient are empty.
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", v.Process.Pid))
		if err != nil || strings.Count(string(text), ":\t0000000000000000\n") < 4 {
			t.Errorf("the agent, with %v: got %v, %s; want no capabilities", caps, err, text)
		}
		problems, others := problemsAfter(t, socket, victim)
		if others != (caps != nil) {
			t.Errorf("with %v: got the right to read other users' processes %v, want that of the helper", caps, others)
		}
		if got := strings.Contains(problems, denied); got != (caps == nil) {
			t.Errorf("with %v: got %s, want %q %v", caps, problems, denied, caps == nil)
		}
		if caps == nil {
			stop(t, v)
			continue
		}
		keeper := childOf(t, v.Process.Pid, "keep")
		helper := childOf(t, keeper, "read")
		reported := false
		for range 4 { // the next helper may run before a busy machine asks
			if err := syscall.Kill(childOf(t, keeper, "read"), syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
			problems, _ = problemsAfter(t, socket, victim)
			if reported = strings.Contains(problems, "has ended and is started again"); reported {
				break
			}
		}
		if !reported {
			t.Errorf("after the end of the helper: got %s, want that reported", problems)
		}
		next := childOf(t, keeper, "read")
		if next == helper {
			t.Errorf("got helper %d again, want another one", next)
		}
		stop(t, v)
		for _, pid := range []int{keeper, next} {
			for end := time.Now().Add(slowest / 2); unix.Kill(pid, 0) == nil; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("process %d outlives the agent", pid)
				}
			}
		}
	}
}

// The agent of a service follows the scheduler, and has no capabilities: its helper holds CAP_BPF and CAP_PERFMON.
func TestAgentFollowsTheSchedulerThroughAHelper(t *testing.T) {
	program := copyOf(t, filepath.Join(openFolder(t), "stallspan"))
	if err := bpf.Supported("").Of(bpf.Threads); err != nil {
		t.Skip("needs BPF: ", err)
	}
	v := asOther(t, program, "agent")
	v.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_DAC_READ_SEARCH, unix.CAP_SYS_PTRACE, unix.CAP_BPF, unix.CAP_PERFMON}
	socket := filepath.Join(v.temp, "s.sock")
	v.Env = append(v.Env, "STALLSPAN_SOCKET="+socket)
	var out liveOutput
	v.Stderr = &out
	v.start()
	defer stop(t, v)
	out.until(t, 1, "windows are announced at "+socket)
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", v.Process.Pid))
	for _, task := range tasks {
		// The sets inheritable, permitted, effective and ambient are empty.
		text, err := os.ReadFile(task)
		if err != nil || strings.Count(string(text), ":\t0000000000000000\n") < 4 {
			t.Errorf("%s: got %v, %s; want no capabilities", task, err, text)
		}
	}
	victim := startVictim(t, "sh", "-c", "while sleep 0.1; do :; done")
	var evidence string
	var status api.Status
	// The events have to cover 0.95 of a window. A busy machine may follow the process a moment after it began, which a
	// longer one allows.
	for length := 2 * time.Second; length <= 16*time.Second; length *= 2 {
		if evidence, status = watched(t, socket, victim, length); evidence == "schedule" {
			return
		}
		t.Logf("in %v: got the evidence %q", length, evidence)
	}
	t.Errorf("got the evidence %q, want schedule; problems: %q", evidence, status.Problems)
}

// childOf waits for the child of a process that is a helper with a role, or a keeper for "keep".
func childOf(t *testing.T, pid int, role string) int {
	t.Helper()
	for end := time.Now().Add(slowest / 2); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
		for _, list := range lists {
			text, _ := os.ReadFile(list)
			for child := range strings.FieldsSeq(string(text)) {
				line, _ := os.ReadFile("/proc/" + child + "/cmdline")
				args := strings.Split(string(line), "\x00")
				if len(args) > 2 && args[0] == "stallspan-helper" && (args[1] == role || args[1] != "keep" && args[2] == role) {
					id, _ := strconv.Atoi(child)
					return id
				}
			}
		}
	}
	t.Fatalf("process %d has no child that is %s", pid, role)
	return 0
}
