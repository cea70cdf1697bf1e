package cli

import (
	"testing"
	"time"
)

func TestPastMoments(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.Local)
	for text, want := range map[string]time.Time{
		"2h": now.Add(-2 * time.Hour), "90": now.Add(-90 * time.Second), "3d": now.Add(-72 * time.Hour),
		"1.5d": now.Add(-36 * time.Hour), "11:30": now.Add(-30 * time.Minute),
		"13:00": now.Add(-23 * time.Hour), "11:59:30": now.Add(-30 * time.Second),
		"2026-11-01T08:00": time.Date(2026, 11, 1, 8, 0, 0, 0, time.Local),
		"2026-11-01 08:00": time.Date(2026, 11, 1, 8, 0, 0, 0, time.Local),
		"2026-11-01":       time.Date(2026, 11, 1, 0, 0, 0, 0, time.Local), "2026-11-01T08:00:00Z": time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC),
	} {
		if got, err := parsePast(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%s: got %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "d", "2hd", "-1h", "+5x", "25:00", "2026-13-01", "NaN"} {
		if got, err := parsePast(text, now); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}
