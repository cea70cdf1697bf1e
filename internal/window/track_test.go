package window

import (
	"slices"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

func TestBack(t *testing.T) {
	var track Track
	for _, at := range []time.Duration{10 * time.Second, 10 * time.Minute, 30 * time.Minute, 30*time.Minute - time.Millisecond, time.Hour} {
		track.Done(&Report{Window: Window{End: sample.Stamp{Mono: at}}})
	}
	for name, c := range map[string]struct{ since, now, last time.Duration }{
		"all":                     {0, time.Hour, 10 * time.Second},
		"those that are kept":     {0, time.Hour + time.Minute, 10 * time.Minute},
		"since one ended":         {30 * time.Minute, time.Hour, 30*time.Minute - time.Millisecond},
		"since the last one":      {time.Hour, time.Hour, time.Hour},
		"and none of a later one": {2 * time.Hour, 2 * time.Hour, 0},
	} {
		var all []time.Duration
		for r := range track.Back(c.since, c.now) {
			all = append(all, r.End.Mono)
		}
		if len(all) > 0 && (all[0] != time.Hour || slices.Min(all) != c.last) || (len(all) == 0) != (c.last == 0) {
			t.Errorf("%s: %v", name, all)
		}
	}
	for r := range track.Back(0, time.Hour) {
		if r.End.Mono != time.Hour {
			t.Error("what ended last is not in front")
		}
		break
	}
}
