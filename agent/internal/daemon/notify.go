package daemon

import (
	"context"
	"net"
	"os"
	"strconv"
	"time"
)

// Notifier reports to systemd that the agent is ready, stops, or is alive (sd_notify(3)). It does nothing without
// systemd.
type Notifier struct {
	path     string        // of systemd's socket; "" for none
	watchdog time.Duration // systemd kills an agent that is silent for so long; 0 for no limit
}

// newNotifier reads what systemd has set. Another process may be meant: then this one is not watched.
func newNotifier() Notifier {
	n := Notifier{path: os.Getenv("NOTIFY_SOCKET")}
	of := os.Getenv("WATCHDOG_PID")
	if us, err := strconv.ParseUint(os.Getenv("WATCHDOG_USEC"), 10, 32); err == nil &&
		(of == "" || of == strconv.Itoa(os.Getpid())) {
		n.watchdog = time.Duration(us) * time.Microsecond
	}
	return n
}

// say sends a state. An error has no consequence that this program could change.
func (n Notifier) say(state string) {
	if n.path == "" {
		return
	}
	conn, err := net.Dial("unixgram", n.path)
	if err != nil {
		return
	}
	_, _ = conn.Write([]byte(state))
	_ = conn.Close()
}

// watch reports that the agent is alive while rounds, the number of its rounds of readings, grows, until ctx ends.
func (n Notifier) watch(ctx context.Context, rounds func() uint64) {
	if n.path == "" || n.watchdog == 0 {
		return
	}
	ticker := time.NewTicker(n.watchdog / 3)
	defer ticker.Stop()
	for last := rounds(); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if now := rounds(); now != last {
			last = now
			n.say("WATCHDOG=1")
		}
	}
}
