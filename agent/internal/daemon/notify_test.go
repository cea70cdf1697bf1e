package daemon

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stallspan/stallspan/test/fixture"
)

// An agent whose readings hang is silent, so that systemd starts it again.
func TestWatchdogOfAHang(t *testing.T) {
	path, next := fixture.ServiceManager(t)
	t.Setenv("NOTIFY_SOCKET", path)
	ctx, cancel := context.WithCancel(t.Context())
	var rounds atomic.Uint64
	rounds.Store(1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		reportAlive(ctx, 30*time.Millisecond, rounds.Load)
	}()
	if got := next(300 * time.Millisecond); got != "" {
		t.Errorf("without readings: got %q, want nothing", got)
	}
	rounds.Add(1)
	if got := next(30 * time.Second); got != "WATCHDOG=1" {
		t.Errorf("after a reading: got %q, want WATCHDOG=1", got)
	}
	if got := next(300 * time.Millisecond); got != "" {
		t.Errorf("without another: got %q, want nothing", got)
	}
	cancel()
	<-done
}

// What is meant for another process has no effect.
func TestWatchdogOfAnother(t *testing.T) {
	t.Setenv("WATCHDOG_USEC", "1000000")
	for pid, want := range map[string]time.Duration{"": time.Second, "1": 0} {
		t.Setenv("WATCHDOG_PID", pid)
		if got := watchdog(); got != want {
			t.Errorf("for process %q: got %v, want %v", pid, got, want)
		}
	}
	reportAlive(t.Context(), 0, func() uint64 { return 0 }) // returns: there is no limit
}
