//go:build amd64 || arm64

package helper

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/source/bpf"
	"github.com/stallspan/stallspan/internal/source/process"
	"github.com/stallspan/stallspan/internal/trust"
)

// actAs makes a copy of the test binary act as an agent, or as a helper that tries what it must not.
const actAs = "STALLSPAN_HELPER_TEST"

func TestMain(m *testing.M) {
	roles := map[string]func() error{"agent": actAsAgent, "attacker": actAsAttacker, "confined": actConfined,
		"tracing agent": actAsTracingAgent, "refused agent": actRefused, "confined tracer": actConfinedTracer}
	if act := roles[os.Getenv(actAs)]; act != nil {
		if err := act(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// slowest bounds what a busy machine may take.
const slowest = time.Minute

// otherUser is a user without rights; victimUser is another one.
const (
	otherUser  = 65534
	victimUser = 65533
)

// separated runs a role as the other user with the capabilities of a service, and decodes what it prints.
func separated(t *testing.T, role string, args []string, into any, more ...uintptr) {
	t.Helper()
	separatedAs(t, otherUser, role, args, into, more...)
}

// separatedAs is separated for a user. Root gets two capabilities, as in a container.
func separatedAs(t *testing.T, uid uint32, role string, args []string, into any, more ...uintptr) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root for a second user")
	}
	folder, err := os.MkdirTemp("", "st") // t.TempDir is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	text, err := os.ReadFile(os.Args[0])
	program := filepath.Join(folder, "agent")
	if err := errors.Join(err, os.Chmod(folder, 0o755), os.WriteFile(program, text, 0o700),
		os.Chmod(program, 0o755)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), actAs+"="+role, "GORACE=atexit_sleep_ms=0", "GOCOVERDIR="+folder)
	cmd.Dir = "/"
	var out, errors bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errors
	if uid == 0 {
		err = trust.StartWith(trust.Processes, cmd.Start)
	} else {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid},
			AmbientCaps: append(more, unix.CAP_DAC_READ_SEARCH, unix.CAP_SYS_PTRACE, unix.CAP_SYS_RAWIO)}
		err = cmd.Start()
	}
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil || json.Unmarshal(out.Bytes(), into) != nil {
		t.Fatalf("the %s: got %v, %s%s", role, err, &out, &errors)
	}
}

// victim starts a process of a third user, with a secret in its environment. It is fully started when this returns.
func victim(t testing.TB, command ...string) (pid int) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root for a second user")
	}
	cmd := exec.CommandContext(t.Context(), "sh", append([]string{"-c", `echo; exec "$@"`, "sh"}, command...)...)
	cmd.Env = []string{"SECRET=hunter2"}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: victimUser, Gid: victimUser}}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

// rights are lines of /proc/PID/status.
type rights struct{ Permitted, Effective, NoNewPrivs, Seccomp string }

func rightsOf(path string) (r rights, err error) {
	text, err := os.ReadFile(filepath.Join(path, "status"))
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); key {
		case "CapPrm":
			r.Permitted = value
		case "CapEff":
			r.Effective = value
		case "NoNewPrivs":
			r.NoNewPrivs = value
		case "Seccomp":
			r.Seccomp = value
		}
	}
	return r, err
}

// seen is what the agent sees.
type seen struct {
	Threads        map[string]rights // of the agent, by ID
	Keeper, Helper rights
	Own            string // the error of reading the victim's bytes itself
	Bytes          process.Bytes
	Mounts, Files  int
	Same           bool
	Left           bool   // a helper or keeper after Close
	Wrote          string // the error of writing root's file through a process of the host
}

// actAsAgent separates its privileges, and reads a victim.
func actAsAgent() error {
	if err := Separate(trust.None); err != nil {
		return err
	}
	left, err := left()
	if err != nil {
		return err
	}
	helpers, err := Inherit()
	client := helpers.Reader
	if err != nil || client == nil || helpers.Tracer != nil {
		return fmt.Errorf("got no helper that reads, or one that it lacks the capabilities for: %w", err)
	}
	var s seen
	s.Threads = map[string]rights{}
	tasks, err := filepath.Glob("/proc/self/task/*")
	for _, task := range tasks {
		var failed error
		s.Threads[filepath.Base(task)], failed = rightsOf(task)
		err = errors.Join(err, failed)
	}
	keeper := fmt.Sprint("/proc/", left.Keeper)
	pid, failed := childOf(left.Keeper, "read")
	helper := fmt.Sprint("/proc/", pid)
	var failed1, failed2 error
	s.Keeper, failed1 = rightsOf(keeper)
	s.Helper, failed2 = rightsOf(helper)
	if err = errors.Join(err, failed, failed1, failed2); err != nil {
		return err
	}

	pid, err = strconv.Atoi(os.Args[1])
	if err != nil {
		return err
	}
	of, _ := process.StatOf("/", pid)
	key := process.Key{PID: pid, Start: of.Start}
	if len(os.Args) > 2 {
		file, err := os.OpenFile(os.Args[2], os.O_WRONLY, 0)
		if err == nil {
			err = file.Close()
		}
		s.Wrote = fmt.Sprint(err)
	}
	if _, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid)); err != nil {
		s.Own = err.Error()
	}
	var list [1]process.Bytes
	err = patiently(func() error {
		err1 := client.Bytes([]process.Key{key}, list[:])
		s.Bytes = list[0]
		var err2, err3 error
		var list []process.OpenFile
		list, s.Files, err2 = client.Files(key, 0, 10)
		s.Mounts = len(list)
		s.Same, err3 = client.SameProgram(key, key)
		return errors.Join(err1, err2, err3)
	})
	if err != nil {
		return err
	}
	helpers.Close()
	s.Left = true
	for end := time.Now().Add(slowest); s.Left && time.Now().Before(end); time.Sleep(time.Millisecond) {
		_, err1 := os.Stat(keeper)
		_, err2 := os.Stat(helper)
		s.Left = err1 == nil || err2 == nil
	}
	return json.NewEncoder(os.Stdout).Encode(s)
}

// left is what Separate has left.
func left() (s started, err error) {
	err = json.Unmarshal([]byte(os.Getenv(Variable)), &s)
	return s, err
}

// childOf waits for the child of a keeper that has a role, or is the spare.
func childOf(keeper int, role string) (pid int, err error) {
	for end := time.Now().Add(slowest); time.Now().Before(end); time.Sleep(time.Millisecond) {
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", keeper))
		for _, list := range lists {
			text, _ := os.ReadFile(list)
			for id := range strings.FieldsSeq(string(text)) {
				line, _ := os.ReadFile("/proc/" + id + "/cmdline")
				args := strings.Split(string(line), "\x00")
				if len(args) > 2 && args[0] == name && (args[1] == role || args[1] != keeps && args[2] == role) {
					return strconv.Atoi(id)
				}
			}
		}
	}
	return 0, fmt.Errorf("keeper %d has no %s", keeper, role)
}

// patiently calls ask again while a busy machine makes the helper late.
func patiently(ask func() error) (err error) {
	for end := time.Now().Add(slowest); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if err = ask(); !errors.As(err, new(bpf.Away)) {
			break
		}
	}
	return err
}

// The agent has no capabilities, and still gets another user's bytes.
func TestSeparate(t *testing.T) {
	pid := victim(t, "sleep", "600")
	var got seen
	separated(t, "agent", []string{strconv.Itoa(pid)}, &got)
	checkSeparated(t, &got)
}

// So has an agent of root that has no more capabilities than its helpers need, as in a container. With CAP_SYS_PTRACE,
// it could write the host's files through the folders of other processes of root.
func TestSeparateInAContainer(t *testing.T) {
	pid := victim(t, "sleep", "600")
	secret := filepath.Join(t.TempDir(), "of-root")
	if err := os.WriteFile(secret, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	through := fmt.Sprintf("/proc/%d/root%s", os.Getpid(), secret)
	var got seen
	separatedAs(t, 0, "agent", []string{strconv.Itoa(pid), through}, &got)
	checkSeparated(t, &got)
	if !strings.Contains(got.Wrote, fs.ErrPermission.Error()) {
		t.Errorf("writing a file through a process of root: got %q, want no permission", got.Wrote)
	}
	var whole bytes.Buffer // the attack works with the capabilities
	attack := exec.CommandContext(t.Context(), "sh", "-c", `echo changed >"$1"`, "sh", through)
	attack.Stderr = &whole
	if err := errors.Join(trust.StartWith(trust.Processes, attack.Start), attack.Wait()); err != nil {
		t.Errorf("with the capabilities: got %v, %s; want a written file", err, &whole)
	}
}

func checkSeparated(t *testing.T, got *seen) {
	t.Helper()
	if len(got.Threads) < 2 {
		t.Errorf("got %d threads of the agent, want several", len(got.Threads))
	}
	for id, r := range got.Threads {
		if strings.Trim(r.Permitted+r.Effective, "0") != "" {
			t.Errorf("thread %s of the agent: got %+v, want no capabilities", id, r)
		}
	}
	const processes = "0000000000080004"
	if got.Keeper.Permitted != processes || got.Keeper.NoNewPrivs != "1" {
		t.Errorf("the keeper: got %+v, want capabilities %s", got.Keeper, processes)
	}
	if want := (rights{processes, processes, "1", "2"}); got.Helper != want {
		t.Errorf("the helper: got %+v, want %+v", got.Helper, want)
	}
	if !strings.Contains(got.Own, fs.ErrPermission.Error()) {
		t.Errorf("the agent itself: got %q, want no permission", got.Own)
	}
	if got.Bytes.Err != 0 || got.Bytes.Chars == 0 { // the loader of sleep has read its libraries
		t.Errorf("bytes: got %+v", got.Bytes)
	}
	if got.Files < 1 || got.Files > 10 || got.Mounts > got.Files || !got.Same {
		t.Errorf("got %d mounts of %d files, the same program %v", got.Mounts, got.Files, got.Same)
	}
	if got.Left {
		t.Error("keeper or helper run after Close")
	}
}

// A helper that ends with the agent leaves nothing, however the agent ends.
func TestHelperEndsWithAgent(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root for capabilities of a service")
	}
	s := started{Root: "/", Sockets: map[string]int{}}
	if err := s.start([]string{"read"}, trust.Processes); err != nil {
		t.Fatal(err)
	}
	c, err := s.inherit(roles[0], s.Sockets["read"])
	if err != nil {
		t.Fatal(err)
	}
	<-c.greeted
	spare, err := childOf(s.Keeper, keeps)
	if err != nil {
		t.Error(err)
	}
	c.close() // as the end of the agent does
	keeper, err := os.FindProcess(s.Keeper)
	if err != nil {
		t.Fatal(err)
	}
	state, err := keeper.Wait()
	if err != nil || state.ExitCode() != exitDone {
		t.Errorf("got %v, %v; want exit status %d", state, err, exitDone)
	}
	for end := time.Now().Add(slowest); runs(spare); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the spare keeper outlives the agent")
		}
	}
}

// runs reports whether a process has not ended.
func runs(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(text), ") Z ")
}

// A role that does not exist does nothing.
func TestUnknownRole(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Args = []string{name, "unknown"}
	var failed *exec.ExitError
	if out, err := cmd.CombinedOutput(); !errors.As(err, &failed) || failed.ExitCode() != exitFailed {
		t.Errorf("got %v, %s; want exit status %d", err, out, exitFailed)
	}
}
