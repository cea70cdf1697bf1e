package agent

import (
	"context"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stallspan/stallspan/test/fixture"
)

// An agent reports to systemd that it is ready, that it is alive, and that it stops.
func TestNotify(t *testing.T) {
	t.Parallel()
	path, next := fixture.ServiceManager(t)
	v := stallspan(t, "agent")
	v.Env = append(v.Env, "STALLSPAN_SOCKET="+socketIn(t), "NOTIFY_SOCKET="+path, "WATCHDOG_USEC=1500000")
	v.start()
	for _, want := range []string{"READY=1", "WATCHDOG=1", "WATCHDOG=1"} {
		if got := next(30 * time.Second); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if err := v.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	got := next(30 * time.Second)
	for got == "WATCHDOG=1" {
		got = next(30 * time.Second)
	}
	if code := v.wait(); got != "STOPPING=1" || code != 0 {
		t.Errorf("got %q and exit code %d, want STOPPING=1 and 0", got, code)
	}
}

// An agent whose readings hang is silent, so that systemd starts it again.
func TestWatchdogOfAHang(t *testing.T) {
	path, next := fixture.ServiceManager(t)
	ctx, cancel := context.WithCancel(t.Context())
	var rounds atomic.Uint64
	rounds.Store(1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		notifier{path: path, watchdog: 30 * time.Millisecond}.watch(ctx, rounds.Load)
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
	t.Setenv("NOTIFY_SOCKET", "")
	t.Setenv("WATCHDOG_USEC", "1000000")
	for pid, want := range map[string]time.Duration{"": time.Second, "1": 0} {
		t.Setenv("WATCHDOG_PID", pid)
		if got := newNotifier().watchdog; got != want {
			t.Errorf("for process %q: got %v, want %v", pid, got, want)
		}
	}
	notifier{watchdog: time.Second}.watch(t.Context(), func() uint64 { return 0 }) // returns: there is no systemd
}
