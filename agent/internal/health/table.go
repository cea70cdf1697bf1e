package health

import (
	"cmp"
	"fmt"
	"path"
	"slices"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/state/drives"
)

const (
	modelWidth = 24
	driveWidth = 9
)

// drawHealth writes one row for each disk, and below it the finding and the remedy, unless it is brief. Of several
// files, it names them, as many machines have an sda: if it is brief, in place of the model.
func drawHealth(t *output.Table, all []drives.Drive, brief bool) {
	if len(all) == 0 {
		return
	}
	several := len(all) > 1 && slices.ContainsFunc(all, func(d drives.Drive) bool { return d.File != "" })
	row := func(disk, model, size, state string, color output.Color, temperature, on, used string) {
		t.Cells(output.Cell{Text: fmt.Sprintf("%s %s %8s ", output.Fit(disk, driveWidth), output.Fit(model,
			modelWidth), size)},
			output.Cell{Text: fmt.Sprintf("%-9s", state), Color: color},
			output.Cell{Text: fmt.Sprintf(" %5s %6s %5s", temperature, on, used)})
	}
	model := func(r *drives.Report) string { return r.Model }
	heading := "model"
	if several && brief {
		heading, model = "file", func(r *drives.Report) string { return path.Base(r.File) }
	}
	row("disk", heading, "size", "state", output.Plain, "temp", "on", "used")
	for i := range all {
		r := drives.ReportOf(&all[i])
		row(cmp.Or(r.Device, "-"), cmp.Or(model(&r), "-"), output.CapacityText(r.Size), stateWords[string(r.Status)],
			driveColors[string(r.Status)], celsius(r.Temperature), age(r.PowerOnHours), used(r.Used))
		if brief {
			continue
		}
		if several && r.File != "" {
			t.Text("  File: ", r.File)
		}
		if r.Serial != "" && r.Status != "ok" {
			t.Text("  Serial: ", r.Serial) // how people find it in the machine
		}
		t.Text("  ", r.Finding)
		t.Text("  Try: ", r.Remedy)
	}
}

// stateWords are the states in the table.
var stateWords = map[string]string{
	"ok": "ok", "degraded": "degraded", "predicted_failure": "FAILING", "failed": "FAILED", "vanished": "VANISHED",
	"standby": "asleep", "unread": "unread",
}

// driveColors are the colours of these states.
var driveColors = map[string]output.Color{
	"ok": output.Good, "degraded": output.Warn, "predicted_failure": output.Bad, "failed": output.Bad,
	"vanished": output.Bad, "unread": output.Warn,
}

func celsius(t *float64) string {
	if t == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f C", *t)
}

// age is how long a disk was powered on, in years or days.
func age(hours *uint64) string {
	switch {
	case hours == nil:
		return "-"
	case *hours < 24*365:
		return fmt.Sprintf("%d d", *hours/24)
	}
	return fmt.Sprintf("%.1f y", float64(*hours)/24/365)
}

func used(percent *uint64) string {
	if percent == nil {
		return "-"
	}
	return fmt.Sprintf("%d %%", *percent)
}
