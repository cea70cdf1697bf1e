package explain

import (
	"strings"
	"testing"
	"time"
)

// TestInOrder: what is within an epoch follows it, also if it was announced a moment before.
func TestInOrder(t *testing.T) {
	all := []Place{
		{ID: "steps4", Within: "epoch2", Start: 15 * time.Second, Length: time.Second},
		{ID: "steps1", Within: "epoch1", Start: time.Second - 1, Length: time.Second},
		{ID: "steps2", Within: "epoch1", Start: 2 * time.Second, Length: time.Second},
		{ID: "load", Start: 0, Length: time.Second},
		{ID: "epoch1", Start: time.Second, Length: 10 * time.Second},
		{ID: "part", Start: 12 * time.Second, Length: time.Second},
		{ID: "whole", Start: 12 * time.Second, Length: 2 * time.Second},
		{ID: "epoch2", Start: 14 * time.Second, Length: 3 * time.Second},
		{ID: "steps3", Within: "unknown", Start: 13 * time.Second, Length: time.Second},
	}
	InOrder(all, func(p Place) Place { return p })
	var got []string
	for _, p := range all {
		got = append(got, p.ID)
	}
	const want = "load epoch1 steps1 steps2 whole part steps3 epoch2 steps4"
	if text := strings.Join(got, " "); text != want {
		t.Errorf("got %s, want %s", text, want)
	}
}
