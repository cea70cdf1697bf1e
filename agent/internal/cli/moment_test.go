package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

func TestPastMoments(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.Local)
	for text, want := range map[string]time.Time{
		"2h": now.Add(-2 * time.Hour), "90": now.Add(-90 * time.Second), "3d": now.Add(-72 * time.Hour),
		"1.5d": now.Add(-36 * time.Hour), "11:30": now.Add(-30 * time.Minute),
		"13:00": now.Add(-23 * time.Hour), "2026-11-01T08:00": time.Date(2026, 11, 1, 8, 0, 0, 0, time.Local),
	} {
		if got, err := parsePast(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "d", "2hd", "-1h", "+5x", "25:00", "NaN"} {
		if got, err := parsePast(text, now); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}

func TestMoments(t *testing.T) {
	first := sample.Stamp{Mono: time.Hour, Wall: time.Date(2026, 11, 3, 23, 50, 0, 0, time.Local)}
	after := func(d time.Duration) sample.Stamp { return sample.Stamp{Mono: first.Mono + d, Wall: first.Wall.Add(d)} }
	for text, want := range map[string]time.Duration{ // after the first reading
		"+90":                 90 * time.Second,
		"+10m":                10 * time.Minute,
		"23:55":               5 * time.Minute,
		"23:50:30":            30 * time.Second,
		"00:10":               20 * time.Minute, // of the next day
		"2026-11-03 23:51":    time.Minute,
		"2026-11-03T23:51:10": 70 * time.Second,
		"2026-11-04":          10 * time.Minute,
		first.Wall.Add(time.Second).UTC().Format(time.RFC3339): time.Second,
	} {
		m, err := parseMoment(text)
		if err != nil || m.Before(after(want-1), first) || !m.Before(after(want), first) {
			t.Errorf("%q: got %+v, %v, want %v after the first reading", text, m, err, want)
		}
	}
	for _, text := range []string{"soon", "25:00", "+", "+-1", "10m", "2026-13-01"} {
		if m, err := parseMoment(text); err == nil || !strings.Contains(err.Error(), "give ") {
			t.Errorf("%q: got %+v, %v, want an error", text, m, err)
		}
	}
}
