package agent

import (
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
