package wrap

import (
	"testing"

	"golang.org/x/sys/unix"
)

// A relay keeps a signal that is for the program.
func TestRelayBeforeTheProgram(t *testing.T) {
	signals := NewRelay(t.Context())
	defer signals.Stop()
	signals.signals <- unix.SIGUSR2 // is for the program
	if err := signals.Ended(); err != nil || len(signals.signals) != 1 {
		t.Errorf("SIGUSR2: got %v and %d signals, want none and 1", err, len(signals.signals))
	}
}
