package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestChooseProcess(t *testing.T) {
	t.Parallel()
	known := map[int]process{}
	for _, p := range []process{
		{pid: 1, name: "init", program: "init"},
		{pid: 10, parent: 1, name: "train.py", program: "torchrun", command: "torchrun train.py"},
		{pid: 11, parent: 10, name: "train.py", program: "python3", command: "python3 train.py"},
		{pid: 12, parent: 11, name: "train.py", program: "python3", command: "python3 train.py"},
		{pid: 20, parent: 1, name: "serve.py", program: "python3", command: "python3 serve.py"},
		{pid: 21, parent: 1, name: "serve.py", program: "python3", command: "python3 serve.py --port 2"},
		{pid: 30, parent: 1, name: "serve.py", program: "sudo", command: "sudo stallspan attach serve.py"},
		{pid: 40, parent: 1, name: "eval.py", program: "runuser", foreign: true},
		{pid: 41, parent: 40, name: "eval.py", program: "python3"},
		{pid: 42, parent: 41, name: "eval.py", program: "python3"},
		{pid: 50, parent: 1, name: "other.py", program: "python3", foreign: true},
		{pid: 31, parent: 30, name: "serve.py", program: "stallspan"},
	} {
		known[p.pid] = p
	}
	for _, test := range []struct {
		name string
		pid  int
		err  string
	}{
		{"train.py", 10, ""}, // not its workers
		{"torchrun", 10, ""},
		{"eval.py", 41, ""},  // not root's runuser
		{"other.py", 50, ""}, // which is refused or watched with a note
		{"serve.py", 0, `2 processes are called "serve.py": give the number of one: 20 (python3 serve.py), ` +
			`21 (python3 serve.py --port 2)`},
		{"stallspan", 0, `no process is called "stallspan": give its number, see ps -e`},
	} {
		found, err := choose(known, 31, test.name)
		if text := errorText(err); found.pid != test.pid || text != test.err {
			t.Errorf("%s: got process %d and %q, want %d and %q", test.name, found.pid, text, test.pid, test.err)
		}
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestAttach: a program that runs already is watched by its number and by its script's name.
func TestAttach(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "attached-"+strconv.Itoa(os.Getpid())+".sh")
	if err := os.WriteFile(script, []byte("while :; do :; done\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	job := exec.Command("sh", script)
	if err := job.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = job.Process.Kill()
		_ = job.Wait()
	}()
	for _, who := range []string{strconv.Itoa(job.Process.Pid), filepath.Base(script)} {
		v := stallspan(t, "attach", "--json", who, "1")
		if code := v.run(); code != 0 {
			t.Fatalf("attach %s: got exit code %d and %s", who, code, &v.err)
		}
		var got document
		if err := json.Unmarshal(v.out.Bytes(), &got); err != nil || len(got.Windows) != 1 {
			t.Fatalf("attach %s: got %d windows and %v, want one", who, len(got.Windows), err)
		}
		w := got.Windows[0]
		if w.Process == nil || w.Process.OnCPU < 0.05 || w.Name != filepath.Base(script) {
			t.Errorf("attach %s: got %+v, want the time on CPU of a busy loop", who, w)
		}
	}
}

// TestAttachUntilTheEnd: attach reports what it saw of a process that ends.
func TestAttachUntilTheEnd(t *testing.T) {
	t.Parallel()
	job := exec.Command("sleep", "60")
	if err := job.Start(); err != nil {
		t.Fatal(err)
	}
	v := stallspan(t, "attach", strconv.Itoa(job.Process.Pid), "600")
	v.start()
	time.AfterFunc(5*time.Second, func() { // a busy machine takes seconds to start a program
		_ = job.Process.Kill()
		_ = job.Wait()
	})
	if code := v.wait(); code != 0 {
		t.Errorf("got exit code %d, want 0", code)
	}
	if !strings.Contains(v.err.String(), "ended after") || !strings.Contains(v.out.String(), "sleep") {
		t.Errorf("got %q and %q, want its end and a table", &v.err, &v.out)
	}
}

// The remedy has the number of the process, to be typed as it is.
func TestAttachNamesTheProcess(t *testing.T) {
	t.Parallel()
	job := exec.Command("sleep", "600")
	if err := job.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = job.Process.Kill(); _ = job.Wait() }()
	v := stallspan(t, "attach", strconv.Itoa(job.Process.Pid), "1")
	if code := v.run(); code != 0 {
		t.Fatalf("got exit code %d: %s", code, &v.err)
	}
	got := strings.Join(strings.Fields(v.out.String()), " ")
	if want := "py-spy dump --pid " + strconv.Itoa(job.Process.Pid); !strings.Contains(got, want) {
		t.Errorf("got %s, want %q in it", got, want)
	}
}

// TestAttachToAnotherUsersProcess: one warning comes early, and the table does not repeat it for each thread.
func TestAttachToAnotherUsersProcess(t *testing.T) {
	folder := openFolder(t)
	program := copyOf(t, filepath.Join(folder, "stallspan"))
	victim := startVictim(t, "sleep", "900")
	v := asOther(t, program, "attach", strconv.Itoa(victim), "1")
	if code := v.run(); code != 0 {
		t.Fatalf("got exit code %d: %s", code, &v.err)
	}
	errs, out := v.err.String(), v.out.String()
	warning := fmt.Sprintf("warning: process %d belongs to another user", victim)
	at := strings.Index(errs, warning)
	if at < 0 || at > strings.Index(errs, "watching") || strings.Count(errs, "warning") != 1 {
		t.Errorf("got %s, want %q once, before the watch", errs, warning)
	}
	if strings.Contains(out, "Warning") || strings.Contains(out, "permission denied") {
		t.Errorf("got %s, want no further warning", out)
	}
}
