package agent

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/stallspan/stallspan/internal/baseline"
	"github.com/stallspan/stallspan/internal/window"
)

const (
	baselineWidth = 24 // of what was learned
	deviceWidth   = 10
	mostInARow    = 3 // slow ones in a row, from which on the list says so
)

// printBaselines writes a row for each, and below it what a person should know.
func printBaselines(out io.Writer, all []baseline.Entry, now time.Time) error {
	if len(all) == 0 {
		return nil
	}
	var text bytes.Buffer
	t := &table{out: &text}
	row := func(what, device, temperature, n, median, p95, slow, seen string) {
		t.line(fmt.Sprintf("%s %s %-7s %2s %7s %7s %7s %s", fit(what, baselineWidth), fit(device, deviceWidth), temperature,
			n, median, p95, slow, seen))
	}
	row("load or epochs of", "device", "cache", "n", "median", "p95", "slow at", "seen")
	for i := range all {
		e := &all[i]
		slow := "-"
		if limit, known := slowAbove(e); known {
			slow = window.Short(limit.Seconds())
		}
		name := e.Key.Kind() + " " + e.Key.Name()
		row(name, cmp.Or(e.Key.Device(), "-"), cmp.Or(string(e.Key.Temperature()), "-"),
			strconv.Itoa(len(e.Durations)), window.Short(e.Median().Seconds()), window.Short(e.P95().Seconds()), slow, ago(now.Sub(e.Last)))
		if columns(name) > baselineWidth {
			t.line("  " + string(e.Key)) // in one line, however long, to be copied
		}
		if e.Slow >= mostInARow {
			t.text("  ", fmt.Sprintf("The last %d were all slow. If that is how it is now: stallspan baseline reset '%s'", e.Slow, e.Key))
		}
	}
	_, err := out.Write(text.Bytes())
	return err
}

// showBaselines writes all durations of each, the newest last.
func showBaselines(out io.Writer, all []baseline.Entry) error {
	var text bytes.Buffer
	t := &table{out: &text}
	for i := range all {
		e := &all[i]
		t.line(string(e.Key))
		summary := fmt.Sprintf("%d learned, median %s, p95 %s", len(e.Durations), window.Short(e.Median().Seconds()), window.Short(e.P95().Seconds()))
		if limit, known := slowAbove(e); known {
			summary += ", slow from " + window.Short(limit.Seconds())
		} else {
			summary += fmt.Sprintf(", too few to judge by: %d are needed", baseline.MinCount)
		}
		ones := "ones"
		if e.Slow == 1 {
			ones = "one"
		}
		t.text("  ", fmt.Sprintf("%s; %d slow %s since, last seen %s", summary, e.Slow, ones, e.Last.Local().Format(time.DateTime)))
		took := ""
		for _, d := range e.Durations {
			took += window.Short(d.Seconds()) + ", "
		}
		t.text("  took: ", took[:max(0, len(took)-2)])
	}
	_, err := out.Write(text.Bytes())
	return err
}

// ago is roughly how long ago something was.
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
