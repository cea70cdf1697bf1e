package history

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

func TestUnread(t *testing.T) {
	h, err := New(Config{Tiers: []Tier{{Period: 0, Rows: 100}, {Period: time.Second, Rows: 100}, {Period: 10 * time.Second, Rows: 100}}})
	if err != nil {
		t.Fatal(err)
	}
	cores := func(at time.Duration) {
		if err := h.Append(&sample.Sample{At: sample.Stamp{Mono: at}, Cores: []sample.Core{{Name: "cpu0", User: at}}}); err != nil {
			t.Fatal(err)
		}
	}
	const gapFrom, gapTo, last = 200 * time.Second, 241 * time.Second, 300 * time.Second
	for at := time.Second; at <= last; at += tick {
		if at <= gapFrom || at >= gapTo {
			cores(at)
		}
	}
	for _, c := range []struct {
		name             string
		start, end, want time.Duration
	}{
		{"on the finest rows", last - 5*time.Second, last, 0},
		{"on those of a second, across the gap", 201 * time.Second, 299 * time.Second, 40 * time.Second},
		{"on those of ten seconds, with the row before the gap", 5 * time.Second, 150 * time.Second, 0},
		{"across the gap on those of ten seconds", 20 * time.Second, 290 * time.Second, 41 * time.Second},
		{"a window that ends in the gap", 201*time.Second + 500*time.Millisecond, 230 * time.Second, 28500 * time.Millisecond},
		{"a window that begins before its end", 240 * time.Second, 250 * time.Second, time.Second},
		{"what was read last is long ago", last - time.Second, last + 20*time.Second, 20 * time.Second},
		{"what was read last was just now", last - time.Second, last + time.Second, 0},
		{"before anything", 0, last, 0},
	} {
		if got := h.Unread(HostCPUTime, c.start, c.end); (got-c.want).Abs() > 10*time.Second || (c.want == 0) != (got == 0) {
			t.Errorf("%s: %v unread, want %v", c.name, got, c.want)
		}
	}
	if got := h.Unread(DiskReadIOs, 0, last); got != 0 {
		t.Errorf("%v unread of what there is none of", got)
	}
}
