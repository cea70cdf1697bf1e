package trust

import (
	"errors"
	"testing"
	"time"
)

// A client gets a quarter of the places of a period, and this program all that are left. A period later all are free.
func TestRate(t *testing.T) {
	r := NewRate(8, time.Minute)
	for i, c := range []struct {
		client string
		at     time.Duration
		want   error
	}{
		{"a", 0, nil}, {"a", time.Second, nil}, {"a", time.Second, ErrShare},
		{"b", time.Second, nil}, {"b", time.Second, nil}, {"b", 2 * time.Second, ErrShare},
		{"", 2 * time.Second, nil}, {"", 2 * time.Second, nil}, {"", 2 * time.Second, nil}, {"", 2 * time.Second, nil},
		{"", 2 * time.Second, ErrFull}, {"c", 2 * time.Second, ErrFull},
		{"a", time.Minute, nil}, {"a", time.Minute, ErrFull}, // the first of a is a minute old
		{"c", 3 * time.Minute, nil},
	} {
		if got := r.Take(c.client, c.at); !errors.Is(got, c.want) {
			t.Errorf("%d: %q at %v: got %v, want %v", i, c.client, c.at, got, c.want)
		}
	}
	if got := len(r.taken); got != 1 {
		t.Errorf("got %d places taken after three minutes, want 1", got)
	}
}
