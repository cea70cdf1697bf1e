package history

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

func TestUnread(t *testing.T) {
	h, err := New(Config{Tiers: []Tier{
		{Period: 0, Rows: 100}, {Period: time.Second, Rows: 100}, {Period: 10 * time.Second, Rows: 100},
	}})
	if err != nil {
		t.Fatal(err)
	}
	cores := func(at time.Duration) {
		s := &sample.Sample{At: sample.Stamp{Mono: at}, Cores: []sample.Core{{Name: "cpu0", User: at}}}
		if err := h.Append(s); err != nil {
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
		{"finest tier", last - 5*time.Second, last, 0},
		{"tier of one second, across the gap", 201 * time.Second, 299 * time.Second, 40 * time.Second},
		{"tier of ten seconds, before the gap", 5 * time.Second, 150 * time.Second, 0},
		{"tier of ten seconds, across the gap", 20 * time.Second, 290 * time.Second, 41 * time.Second},
		{"end in the gap", 201*time.Second + 500*time.Millisecond, 230 * time.Second, 28500 * time.Millisecond},
		{"start in the gap", 240 * time.Second, 250 * time.Second, time.Second},
		{"last reading is old", last - time.Second, last + 20*time.Second, 20 * time.Second},
		{"last reading is recent", last - time.Second, last + time.Second, 0},
		{"before the first reading", 0, last, 0},
	} {
		got := h.Unread(HostCPUTime, c.start, c.end)
		if (got-c.want).Abs() > 10*time.Second || (c.want == 0) != (got == 0) {
			t.Errorf("%s: got %v unread, want %v", c.name, got, c.want)
		}
	}
	if got := h.Unread(DiskReadIOs, 0, last); got != 0 {
		t.Errorf("unknown quantity: got %v unread, want 0", got)
	}
}
