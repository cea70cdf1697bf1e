package agent

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stallspan/stallspan/test/fault"
)

func init() {
	if os.Getenv(actAs) == "report" {
		runtime.LockOSThread() // strace follows the first thread
	}
}

const oldReport = "{\"windows\": []}\n"

// A fault at any system call leaves the old report or the new one.
func TestReportFaults(t *testing.T) {
	t.Parallel()
	folder, temp := t.TempDir(), t.TempDir()
	path, text := filepath.Join(folder, "report.json"), ""
	reset := func(t *testing.T) {
		if err := os.WriteFile(path, []byte(oldReport), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	reset(t)
	reportOnce(path)
	if whole, err := os.ReadFile(path); err != nil || len(whole) < 20 {
		t.Fatalf("got the report %q, %v", whole, err)
	} else {
		text = string(whole)
	}
	fault.Each(t, fault.Program{
		Folder: folder,
		Reset:  reset,
		Start: func() *exec.Cmd {
			cmd := exec.Command(os.Args[0], path)
			cmd.Env = append(os.Environ(), actAs+"=report", "TMPDIR="+temp, "GORACE=atexit_sleep_ms=0")
			return cmd
		},
		State: func() string {
			got, err := os.ReadFile(path)
			switch {
			case string(got) == oldReport:
				return fault.Old
			case string(got) == text:
				return fault.New
			}
			return fmt.Sprintf("%q, %v", got, err)
		},
		After: func(t *testing.T) {
			reportOnce(path)
			if got, err := os.ReadFile(path); err != nil || string(got) != text {
				t.Errorf("the next report: got %q, %v", got, err)
			}
		},
	})
}
