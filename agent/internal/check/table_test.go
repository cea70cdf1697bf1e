package check

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/test/golden"
)

func TestCheckTable(t *testing.T) {
	found := []Finding{
		{Area: GPU, What: "driver", State: Missing, Message: "There is no NVIDIA driver here."},
		{Area: Disks, What: "disk counters", State: Seen,
			Message: "7 disks can be read: nvme0n1, nvme1n1, nvme2n1, nvme3n1, nvme4n1, nvme5n1 and 1 other.",
			Details: map[string]any{"disks": []string{"nvme0n1"}}},
		{Area: Cgroup, What: "own cgroup", State: Limited,
			Message: "A name that a terminal would obey: \x1b[31m.",
			Fix:     "as root: a line that is there to be copied, and therefore stays in one piece, however long it is"},
		{Area: Export, What: "OTLP", State: Off, Message: "No telemetry is exported.",
			Fix: "export OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4317"},
	}
	var out bytes.Buffer
	draw(output.NewTable(&out), found)
	golden.Check(t, filepath.Join("testdata", "table.txt"), out.Bytes())
	for line := range strings.Lines(out.String()) {
		if output.Columns(strings.TrimSuffix(line, "\n")) > output.TableWidth && !strings.Contains(line, "fix: ") {
			t.Errorf("too wide: %q", line)
		}
	}
}
