package baseline

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/explain"
	"github.com/stallspan/stallspan/internal/state/baseline"
)

const (
	baselineWidth = 24
	deviceWidth   = 10
	maxSpread     = 3 // p95 to median, above which a baseline is of no use
	minSlowInARow = 3 // slow windows in a row that make a remark
)

// drawBaselines writes one row for each baseline, and remarks below it.
func drawBaselines(t *output.Table, all []baseline.Entry, now time.Time) {
	if len(all) == 0 {
		return
	}
	row := func(what, device, temperature, n, median, p95, slow, seen string) {
		t.Line(fmt.Sprintf("%s %s %-7s %2s %7s %7s %7s %s",
			output.Fit(what, baselineWidth), output.Fit(device, deviceWidth), temperature, n, median, p95, slow, seen))
	}
	row("load or epochs of", "device", "cache", "n", "median", "p95", "slow at", "seen")
	for i := range all {
		e := &all[i]
		slow := "-"
		if limit, known := slowAbove(e); known {
			slow = explain.Duration(limit.Seconds())
		}
		name := strings.Replace(e.Key.Kind(), "first", "first epoch", 1) + " " + e.Key.Name()
		if client := e.Key.Client(); client != "" {
			name += " [" + client + "]"
		}
		row(name, cmp.Or(e.Key.Device(), "-"), cmp.Or(string(e.Key.Temperature()), "-"), strconv.Itoa(len(e.Durations)),
			explain.Duration(e.Median().Seconds()), explain.Duration(e.P95().Seconds()), slow, ago(now.Sub(e.Last)))
		if output.Columns(name) > baselineWidth {
			t.Line("  " + string(e.Key)) // on one line, however long, to be copied
		}
		if e.Median() > 0 && e.P95().Seconds() > maxSpread*e.Median().Seconds() {
			t.Text("  ", fmt.Sprintf("The p95 is %.0f times the median: this mixes different work, and finds little slow. "+
				"Give each its name, with --name of run or --model and --run of mark.", e.P95().Seconds()/e.Median().Seconds()))
		}
		if e.Slow >= minSlowInARow {
			t.Text("  ", fmt.Sprintf("The last %d were all slow. To accept that as the new normal: stallspan baseline reset "+
				"'%s'", e.Slow, e.Key))
		}
	}
}

// ago formats an age roughly.
func ago(d time.Duration) string {
	switch {
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	}
	return fmt.Sprintf("%dd ago", int(d.Hours()/24))
}
