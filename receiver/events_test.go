//go:build linux && (amd64 || arm64)

package receiver

import (
	"strings"
	"testing"

	"go.opentelemetry.io/collector/filter"

	"github.com/stallspan/stallspan/internal/alert"
)

// Events of excluded devices are dropped. The end of an I/O storm is kept for any disk, because windows report its
// beginning for any disk.
func TestEventsOfExcludedDevices(t *testing.T) {
	disks := FilterConfig{Exclude: []filter.Config{{Strict: "sda"}}}
	w := &stallspanReceiver{devices: deviceFilter{disks: disks.compile()}}
	w.onEvent(alert.Event{Kind: alert.DiskSaturated, Disk: "sda", Message: "sda is busy"})
	w.onEvent(alert.Event{Kind: alert.DiskSaturated, Disk: "sdb", Message: "sdb is busy"})
	w.onEvent(alert.Event{Kind: alert.IOStorm, Resolved: true, Disk: "sda", Count: 2, Message: "sda is calm"})
	events, _, _, _ := w.board.Read(0)
	if len(events) != 2 || !strings.Contains(string(events[0].Line), "sdb is busy") ||
		!strings.Contains(string(events[1].Line), "sda is calm") {
		t.Errorf("events: got %v, want those of sdb and of the storm", events)
	}
}
