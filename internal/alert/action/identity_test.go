package action

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/stallspan/stallspan/internal/emit"
)

// script writes a program that any user can run, in a folder that any user can write to.
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
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return program, folder
}

func try(t *testing.T, e *Exec, event *emit.Event) Outcome {
	t.Helper()
	r := runner(t, Config{Exec: e})
	return r.Try(within(t, 30*time.Second), event)[0]
}

// A program gets the event as JSON and in variables, without the agent's environment. Device names are not interpreted.
func TestExec(t *testing.T) {
	program, folder := script(t, `cat > "$1/json"; env > "$1/env"; echo "done	it"`)
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "key=secret")
	evil := "$(touch " + folder + "/evil)`touch " + folder + "/evil`;\x00\n\x1b[2J'\"\xff"
	e := event(t, "stallspan.disk.saturated", attribute.String("evil", evil), attribute.String("e v;i$l", "x"))
	e.Body = evil
	o := try(t, &Exec{Command: []string{program, folder}}, e)
	if !o.OK || o.Message != "exit status 0: done it" || o.Action != "exec "+program {
		t.Errorf("got %+v, want exit status 0 and its output", o)
	}
	text, err := os.ReadFile(filepath.Join(folder, "json"))
	var l emit.EventJSON
	if err != nil || json.Unmarshal(text, &l) != nil || l.Name != e.Name || l.ID != e.ID || !l.Test {
		t.Errorf("got input %s, %v, want %s", text, err, e.JSON())
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
			t.Errorf("got environment\n%s\nwant %q in it", env, want)
		}
	}
	all := string(env)
	if strings.Contains(all, "OTEL_") || strings.ContainsAny(all, "\x1b") || strings.Contains(all, "E V") {
		t.Errorf("got environment\n%s\nwant it without the agent's, escapes and invalid names", env)
	}
	if _, err := os.Stat(filepath.Join(folder, "evil")); err == nil {
		t.Error("a device name was run as a command")
	}
}

func TestExecFails(t *testing.T) {
	program, _ := script(t, "echo no disk >&2; exit 3")
	o := try(t, &Exec{Command: []string{program}}, event(t, hot))
	if o.OK || o.Message != "exit status 3: no disk" {
		t.Errorf("got %+v, want exit status 3 and its output", o)
	}
	for want, command := range map[string]string{
		"there is no file /nowhere/at/all, correct its path": "/nowhere/at/all", "is not executable": "/etc/passwd"} {
		_, err := New([]Config{{Exec: &Exec{Command: []string{command}}}}, "")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got error %v, want %q", command, err, want)
		}
	}
}

// A program is killed after its timeout, with its children.
func TestExecTimeout(t *testing.T) {
	program, folder := script(t, `sleep 60 & echo $! > "$1/child"; wait`)
	began := time.Now()
	o := try(t, &Exec{Command: []string{program, folder}, Timeout: 500 * time.Millisecond}, event(t, hot))
	if o.OK || !strings.HasPrefix(o.Message, "killed after its timeout of 500ms") || time.Since(began) > 20*time.Second {
		t.Errorf("got %+v after %v, want a kill after 500ms", o, time.Since(began))
	}
	waitForExit(t, folder)
}

// Children of a program are killed when it ends, with any exit status.
func TestExecKillsChildren(t *testing.T) {
	for _, end := range []string{"exit 0", "exit 3"} {
		program, folder := script(t, `sleep 60 >/dev/null 2>&1 </dev/null & echo $! > "$1/child"; `+end)
		if o := try(t, &Exec{Command: []string{program, folder}}, event(t, hot)); o.OK != (end == "exit 0") {
			t.Errorf("%s: got %+v, want that exit status", end, o)
		}
		waitForExit(t, folder)
	}
}

// waitForExit waits for the process with the number in the file child.
func waitForExit(t *testing.T, folder string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, "child"))
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	for range 500 { // until it is reaped
		if alive(t, child) {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		return
	}
	t.Error("the child is still running, want it killed")
}

// alive reports whether a process exists and is not a zombie.
func alive(t *testing.T, pid int) bool {
	t.Helper()
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// A program that ends without reading its input or closing its output delays nothing.
func TestExecLeavesOutputOpen(t *testing.T) {
	program, _ := script(t, "setsid sleep 20 & exit 0")
	began := time.Now()
	o := try(t, &Exec{Command: []string{program}}, event(t, hot))
	if !o.OK || time.Since(began) > 15*time.Second {
		t.Errorf("got %+v after %v, want success within 15s", o, time.Since(began))
	}
}

// Inherited files are not passed on: they may be files that only root could open.
func TestExecInheritsNothing(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "open"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	// Cleared, as of a file that is inherited from a shell.
	if _, _, errno := syscall.Syscall(syscall.SYS_FCNTL, file.Fd(), syscall.F_SETFD, 0); errno != 0 {
		t.Fatal(errno)
	}
	program, _ := script(t, fmt.Sprintf(`[ -e /proc/self/fd/%d ] && echo open; exit 0`, file.Fd()))
	if o := try(t, &Exec{Command: []string{program}}, event(t, hot)); o.Message != "exit status 0" {
		t.Errorf("got %+v, want exit status 0 without output", o)
	}
}

func TestExecAsUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to change the user")
	}
	program, _ := script(t, `id -u; id -G; grep CapEff /proc/self/status`)
	o := try(t, &Exec{Command: []string{program}}, event(t, hot))
	if !o.OK || strings.HasPrefix(o.Message, "exit status 0: 0 ") ||
		!strings.HasSuffix(o.Message, "CapEff: 0000000000000000") {
		t.Errorf("got %+v, want another user than root, without capabilities", o)
	}
	if groups := strings.Fields(strings.TrimPrefix(o.Message, "exit status 0: ")); len(groups) != 4 || groups[1] == "0" {
		t.Errorf("got groups %v, want one other than root's", groups)
	}
	// The script is in a folder that all users may write, so they could replace it.
	unsafe := Config{Exec: &Exec{Command: []string{program}, User: "root"}}
	if _, err := New([]Config{unsafe}, ""); err == nil || !strings.Contains(err.Error(), "chmod go-w") {
		t.Errorf("as root, in a folder of all users: got %v, want a refusal", err)
	}
	if err := os.Chmod(filepath.Dir(program), 0o755); err != nil {
		t.Fatal(err)
	}
	o = try(t, &Exec{Command: []string{program}, User: "root"}, event(t, hot))
	if !strings.HasPrefix(o.Message, "exit status 0: 0 ") {
		t.Errorf("got %+v, want user 0", o)
	}
	unknown := Config{Exec: &Exec{Command: []string{"/bin/true"}, User: "no such user"}}
	if _, err := New([]Config{unknown}, ""); err == nil {
		t.Error("unknown user: got no error, want one")
	}
}

func FuzzEnvironment(f *testing.F) {
	f.Add("hw.id", "GPU-1")
	f.Add("a=b", "\x00\n")
	f.Fuzz(func(t *testing.T, key, value string) {
		e := event(t, hot, attribute.String(key, value))
		e.Body = value
		for _, v := range environment(e) {
			name, text, _ := strings.Cut(v, "=")
			plain := strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == ""
			if strings.ContainsAny(text, "\x00\n\r\x1b") || !plain || len(v) > 4096 {
				t.Errorf("got variable %q, want a plain name and text of at most 4 KiB", v)
			}
		}
	})
}
