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

	"github.com/stallspan/stallspan/agent/internal/reports"
)

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
		var got reports.Document
		if err := json.Unmarshal(v.out.Bytes(), &got); err != nil || len(got.Windows) != 1 {
			t.Fatalf("attach %s: got %d windows and %v, want one", who, len(got.Windows), err)
		}
		w := got.Windows[0]
		if w.Process == nil || w.Process.OnCPU <= 0 || w.Name != filepath.Base(script) {
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
