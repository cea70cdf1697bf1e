package receiver

import (
	"strings"
	"testing"

	"go.opentelemetry.io/collector/filter"

	"github.com/stallspan/stallspan/internal/alert"
)

// A device that the config leaves out tells nothing by itself. A storm is of windows, which tell that it began whatever
// disk it is on, so that it is over is told as well.
func TestHappened(t *testing.T) {
	w := &stallspanReceiver{devices: deviceFilter{disks: FilterConfig{Exclude: []filter.Config{{Strict: "sda"}}}.compile()}}
	w.onEvent(alert.Event{Kind: alert.DiskSaturated, Disk: "sda", Message: "sda is busy"})
	w.onEvent(alert.Event{Kind: alert.DiskSaturated, Disk: "sdb", Message: "sdb is busy"})
	w.onEvent(alert.Event{Kind: alert.IOStorm, Resolved: true, Disk: "sda", Count: 2, Message: "sda is calm"})
	lines, _, _, _ := w.board.Read(0)
	if len(lines) != 2 || !strings.Contains(string(lines[0]), "sdb is busy") || !strings.Contains(string(lines[1]), "sda is calm") {
		t.Errorf("%s", lines)
	}
}
