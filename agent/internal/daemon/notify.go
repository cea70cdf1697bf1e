package daemon

import (
	"context"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"
)

// say reports a state to systemd, if that has started us. An error has no consequence that this program could change.
func say(state string) { _, _ = systemd.SdNotify(false, state) }

// watchdog is for how long systemd lets the agent be silent before it kills it; 0 for no limit. Where systemd's
// variables are wrong or for another process, it sets no limit.
func watchdog() time.Duration {
	limit, _ := systemd.SdWatchdogEnabled(false)
	return limit
}

// reportAlive reports that the agent is alive while rounds, the number of its rounds of readings, grows. It returns
// when ctx ends.
func reportAlive(ctx context.Context, limit time.Duration, rounds func() uint64) {
	if limit == 0 {
		return
	}
	ticker := time.NewTicker(limit / 3)
	defer ticker.Stop()
	for last := rounds(); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if now := rounds(); now != last {
			last = now
			say(systemd.SdNotifyWatchdog)
		}
	}
}
