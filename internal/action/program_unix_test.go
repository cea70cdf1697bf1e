//go:build unix

package action

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/notice"
)

// script writes a program that everybody may run, in a folder in which everybody may write.
func script(t *testing.T, text string) (program, folder string) {
	t.Helper()
	folder, err := os.MkdirTemp("", "action")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	program = filepath.Join(folder, "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"+text), 0o755); err != nil { //nolint:gosec // others are to run it
		t.Fatal(err)
	}
	return program, folder
}

func try(t *testing.T, e *Exec, n *notice.Notice) Outcome {
	t.Helper()
	r := runner(t, Config{Exec: e})
	return r.Try(within(t, 30*time.Second), n)[0]
}

// A program gets the event as JSON and in variables, and nothing of our own environment. What a device is called is text
// to it and no more.
func TestExec(t *testing.T) {
	program, folder := script(t, `cat > "$1/json"; env > "$1/env"; echo "done	it"`)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "key=secret")
	evil := "$(touch " + folder + "/evil)`touch " + folder + "/evil`;\x00\n\x1b[2J'\"\xff"
	n := event(t, "stallspan.disk.saturated", attribute.String("evil", evil), attribute.String("e v;i$l", "x"))
	n.Body = evil
	o := try(t, &Exec{Command: []string{program, folder}}, n)
	if !o.OK || o.Says != "it succeeded: done it" || o.Action != "exec "+program {
		t.Errorf("%+v", o)
	}
	text, err := os.ReadFile(filepath.Join(folder, "json"))
	var l notice.Line
	if err != nil || json.Unmarshal(text, &l) != nil || l.Name != n.Name || l.ID != n.ID || !l.Test {
		t.Errorf("%s, %v", text, err)
	}
	env, err := os.ReadFile(filepath.Join(folder, "env"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"STALLSPAN_EVENT_NAME=stallspan.disk.saturated\n", "STALLSPAN_EVENT_SEVERITY=WARN\n", "STALLSPAN_EVENT_TEST=true\n",
		"STALLSPAN_EVENT_RESOLVED=false\n", "STALLSPAN_EVENT_TIME=2026-03-01T12:00:00Z\n",
		"STALLSPAN_ATTRIBUTE_SYSTEM_DEVICE_NAME=test\n", "STALLSPAN_ATTRIBUTE_EVIL=$(touch ",
	} {
		if !strings.Contains(string(env), want) {
			t.Errorf("%q is not in\n%s", want, env)
		}
	}
	if strings.Contains(string(env), "OTEL_") || strings.Contains(string(env), "\x1b") || strings.Contains(string(env), "E V") {
		t.Errorf("%s", env)
	}
	if _, err := os.Stat(filepath.Join(folder, "evil")); err == nil {
		t.Error("a device's name was run")
	}
}

func TestExecFails(t *testing.T) {
	program, _ := script(t, "echo no disk >&2; exit 3")
	if o := try(t, &Exec{Command: []string{program}}, event(t, hot)); o.OK || o.Says != "it failed: exit status 3: no disk" {
		t.Errorf("%+v", o)
	}
	for want, command := range map[string]string{"no such file": "/nowhere/at/all", "is no program": "/etc/passwd"} {
		if _, err := New([]Config{{Exec: &Exec{Command: []string{command}}}}, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
	}
}

// A program that takes too long is killed with all that it has started.
func TestExecTimeout(t *testing.T) {
	program, folder := script(t, `sleep 60 & echo $! > "$1/child"; wait`)
	began := time.Now()
	o := try(t, &Exec{Command: []string{program, folder}, Timeout: 500 * time.Millisecond}, event(t, hot))
	if o.OK || !strings.HasPrefix(o.Says, "it was killed after 500ms") || time.Since(began) > 20*time.Second {
		t.Errorf("%+v", o)
	}
	gone(t, folder)
}

// What a program leaves behind is killed when it has ended, whether it succeeded or not.
func TestExecLeavesNobody(t *testing.T) {
	for _, end := range []string{"exit 0", "exit 3"} {
		program, folder := script(t, `sleep 60 >/dev/null 2>&1 </dev/null & echo $! > "$1/child"; `+end)
		if o := try(t, &Exec{Command: []string{program, folder}}, event(t, hot)); o.OK != (end == "exit 0") {
			t.Errorf("%s: %+v", end, o)
		}
		gone(t, folder)
	}
}

// gone waits until the process whose number is in the file child is no more.
func gone(t *testing.T, folder string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "child"))
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for range 500 { // until somebody has buried it
		if alive(t, child) {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		return
	}
	t.Error("its child lives on")
}

// alive says whether a process is there and no corpse.
func alive(t *testing.T, pid int) bool {
	t.Helper()
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// One that neither reads the event nor closes its output when it ends holds up nothing.
func TestExecLeavesOpen(t *testing.T) {
	program, _ := script(t, "setsid sleep 20 & exit 0")
	began := time.Now()
	o := try(t, &Exec{Command: []string{program}}, event(t, hot))
	if !o.OK || time.Since(began) > 15*time.Second {
		t.Errorf("%+v after %v", o, time.Since(began))
	}
}

// What was left open for us is not passed on: it may be what only root could open.
func TestExecInheritsNothing(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs close_range, which Linux has")
	}
	file, err := os.Create(filepath.Join(t.TempDir(), "open"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, file.Fd(), syscall.F_SETFD, 0); errno != 0 { // as it came from a shell
		t.Fatal(errno)
	}
	program, _ := script(t, fmt.Sprintf(`[ -e /proc/self/fd/%d ] && echo open; exit 0`, file.Fd()))
	if o := try(t, &Exec{Command: []string{program}}, event(t, hot)); o.Says != "it succeeded" {
		t.Errorf("%+v", o)
	}
}

func TestExecAsNobody(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become somebody else")
	}
	program, _ := script(t, `id -u; id -G; grep CapEff /proc/self/status`)
	o := try(t, &Exec{Command: []string{program}}, event(t, hot))
	if !o.OK || strings.HasPrefix(o.Says, "it succeeded: 0 ") || !strings.HasSuffix(o.Says, "CapEff: 0000000000000000") {
		t.Errorf("%+v", o)
	}
	if groups := strings.Fields(strings.TrimPrefix(o.Says, "it succeeded: ")); len(groups) != 4 || groups[1] == "0" {
		t.Errorf("%+v", o)
	}
	if o := try(t, &Exec{Command: []string{program}, User: "root"}, event(t, hot)); !strings.HasPrefix(o.Says, "it succeeded: 0 ") {
		t.Errorf("%+v", o)
	}
	if _, err := New([]Config{{Exec: &Exec{Command: []string{"/bin/true"}, User: "no such user"}}}, ""); err == nil {
		t.Error("an unknown user is taken")
	}
}

func FuzzEnvironment(f *testing.F) {
	f.Add("hw.id", "GPU-1")
	f.Add("a=b", "\x00\n")
	f.Fuzz(func(t *testing.T, key, value string) {
		n := event(t, hot, attribute.String(key, value))
		n.Body = value
		for _, v := range environment(n) {
			name, text, _ := strings.Cut(v, "=")
			if strings.ContainsAny(text, "\x00\n\r\x1b") || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" || len(v) > 4096 {
				t.Errorf("%q", v)
			}
		}
	})
}
