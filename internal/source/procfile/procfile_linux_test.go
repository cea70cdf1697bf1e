package procfile

import (
	"errors"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stallspan/stallspan/test/hang"
)

// A process for which the kernel does not answer is left out, named once, and read again after its hang. Others are
// read meanwhile.
func TestProcessThatHangs(t *testing.T) {
	for how, file := range map[string]string{hang.Memory: "cmdline", hang.Exec: "io"} {
		t.Run(how, func(t *testing.T) {
			_, before := Late(0)
			p := hang.Start(t, hang.Options{How: how})
			for range 3 {
				if text, err := Text("/proc", p.PID, file, 4096); !errors.Is(err, syscall.ETIMEDOUT) {
					t.Fatalf("got %q, %v, want %v", text, err, syscall.ETIMEDOUT)
				}
			}
			late, next := Late(before)
			if len(late) != 1 || late[0].PID != p.PID {
				t.Errorf("late are %v, want process %d once", late, p.PID)
			}
			if again, _ := Late(next); len(again) > 0 {
				t.Errorf("late again: %v", again)
			}
			if text, err := Text("/proc", os.Getpid(), file, 4096); err != nil || len(text) == 0 {
				t.Errorf("another process: got %q, %v, want its file", text, err)
			}
			p.Release()
			for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
				text, err := Text("/proc", p.PID, file, 4096)
				if err == nil && len(text) > 0 {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("after the hang: got %q, %v, want its file", text, err)
				}
			}
		})
	}
}

// TestReadThatRuns: a thread that works, or waits for a CPU, does not hang.
func TestReadThatRuns(t *testing.T) {
	got, err := Do("/proc", os.Getppid(), func() int {
		runtime.LockOSThread() // as a call of the kernel does
		defer runtime.UnlockOSThread()
		for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); {
		}
		return 7
	})
	if got != 7 || err != nil {
		t.Errorf("got %d, %v, want 7", got, err)
	}
}
