package windows

import (
	"slices"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
)

func TestEndedSince(t *testing.T) {
	var all table
	for _, at := range []time.Duration{
		10 * time.Second, 10 * time.Minute, 30 * time.Minute, 30*time.Minute - time.Millisecond, time.Hour,
	} {
		all.retain(&window.Report{Window: window.Window{End: sample.Stamp{Mono: at}}})
	}
	for name, c := range map[string]struct{ since, now, last time.Duration }{
		"all":                  {0, time.Hour, 10 * time.Second},
		"within the last hour": {0, time.Hour + time.Minute, 10 * time.Minute},
		"since one ended":      {30 * time.Minute, time.Hour, 30*time.Minute - time.Millisecond},
		"since the last one":   {time.Hour, time.Hour, time.Hour},
		"after the last one":   {2 * time.Hour, 2 * time.Hour, 0},
	} {
		var ends []time.Duration
		for r := range all.endedSince(c.since, c.now) {
			ends = append(ends, r.End.Mono)
		}
		if len(ends) > 0 && (ends[0] != time.Hour || slices.Min(ends) != c.last) || (len(ends) == 0) != (c.last == 0) {
			t.Errorf("%s: got %v, want those from 1h down to %v", name, ends, c.last)
		}
	}
	for r := range all.endedSince(0, time.Hour) {
		if r.End.Mono != time.Hour {
			t.Errorf("got %v first, want the newest", r.End.Mono)
		}
		break
	}
}
