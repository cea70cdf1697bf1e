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

// TestAttachReadsAFile: the epochs that a program prints to a file while it is watched are shown, and no others.
func TestAttachReadsAFile(t *testing.T) {
	t.Parallel()
	log, err := os.Create(filepath.Join(t.TempDir(), "slurm-1.out"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	job := exec.Command("sh", "-c", `echo Epoch 1/4 starts; read go; echo Epoch 1/4 done
		for i in 2 3 4; do echo Epoch $i/4 starts; sleep 0.5; echo Epoch $i/4 done; sleep 0.2; done`)
	job.Stdout, job.Stderr = log, log
	start, err := job.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := job.Start(); err != nil {
		t.Fatal(err)
	}
	v := stallspan(t, "attach", "--json", strconv.Itoa(job.Process.Pid), "600")
	said, err := os.Create(filepath.Join(t.TempDir(), "said"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = said.Close() }()
	v.Stderr = said
	v.start()
	for end := time.Now().Add(slowest); ; time.Sleep(10 * time.Millisecond) {
		text, err := os.ReadFile(said.Name())
		if err == nil && strings.Contains(string(text), "reading its output in "+log.Name()) {
			break
		}
		if time.Now().After(end) {
			t.Fatal("attach does not read the file")
		}
	}
	_, _ = start.Write([]byte("go\n"))
	_ = job.Wait()
	if code := v.wait(); code != 0 {
		t.Fatalf("got exit code %d", code)
	}
	var got reports.Document
	if err := json.Unmarshal(v.out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	var epochs []string
	for i := range got.Windows {
		if w := got.Windows[i]; w.Epoch != nil {
			epochs = append(epochs, strconv.Itoa(*w.Epoch))
		}
	}
	if strings.Join(epochs, " ") != "2 3 4" || len(got.Windows) != 4 {
		t.Errorf("got epochs %v of %d windows, want 2, 3 and 4 next to the watch", epochs, len(got.Windows))
	}
}

// sleeper starts a program that sleeps, and returns attach to it for a second. prepare may be nil.
func sleeper(t *testing.T, prepare func(*exec.Cmd) error) (v *invocation, pid string) {
	t.Helper()
	job := exec.Command("sleep", "600")
	if prepare != nil {
		if err := prepare(job); err != nil {
			t.Fatal(err)
		}
	}
	if err := job.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = job.Process.Kill(); _ = job.Wait() })
	pid = strconv.Itoa(job.Process.Pid)
	v = stallspan(t, "attach", pid, "1")
	if code := v.run(); code != 0 {
		t.Fatalf("got exit code %d: %s", code, &v.err)
	}
	return v, pid
}

// TestAttachNamesAnOutput: an output that cannot be read a second time is named.
func TestAttachNamesAnOutput(t *testing.T) {
	t.Parallel()
	v, _ := sleeper(t, func(job *exec.Cmd) error { _, err := job.StdoutPipe(); return err })
	want := "its standard output cannot be read: it goes to a pipe, not to a file"
	if !strings.Contains(v.err.String(), want) {
		t.Errorf("got %s, want %q in it", &v.err, want)
	}
}

// The remedy has the number of the process, to be typed as it is.
func TestAttachNamesTheProcess(t *testing.T) {
	t.Parallel()
	v, pid := sleeper(t, nil)
	got := strings.Join(strings.Fields(v.out.String()), " ")
	if want := "py-spy dump --pid " + pid; !strings.Contains(got, want) {
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
