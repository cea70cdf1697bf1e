package trust

import (
	"errors"
	"strconv"
	"testing"
	"time"
)

// A client gets a quarter of the places of a period, and this program all of them for itself. A period later all are
// free.
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
		{"c", 2 * time.Second, nil},
		{"a", time.Minute, nil}, {"a", time.Minute, ErrShare}, // the first of a is a minute old
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

// However many clients take all that they get, the next one gets as much as they, and all together not much more than
// there is.
func TestRateOfMany(t *testing.T) {
	for name, r := range map[string]*Rate{"quarter": NewRate(6400, time.Hour), "whole": NewWholeRate(6400, time.Hour)} {
		all := 0
		for i := range 64 {
			left := r.Left(strconv.Itoa(i), 0)
			if want := 6400 / max(r.fewest, i+1); left != want {
				t.Errorf("%s: client %d: got %d left, want %d", name, i, left, want)
			}
			r.Note(strconv.Itoa(i), left, 0)
			all += left
		}
		if all > 5*6400 {
			t.Errorf("%s: got %d taken, want at most five times the amount", name, all)
		}
		if got := r.Left("", 0); got != 6400 {
			t.Errorf("%s: this program: got %d left, want all", name, got)
		}
	}
}

// The memory of a rate depends neither on how often something is taken nor on how many clients there are.
func TestRateIsBounded(t *testing.T) {
	r := NewWholeRate(1<<40, time.Hour)
	for i := range 10_000 {
		r.Note("a", 1, time.Duration(i)*time.Second)
	}
	if got := len(r.taken); got > fineParts+1 {
		t.Errorf("got %d takings of one client, want at most %d", got, fineParts+1)
	}
	refused := 0
	for i := range 2 * maxLanes {
		if err := r.Take(strconv.Itoa(i), 24*time.Hour); errors.Is(err, ErrFull) {
			refused++
		}
	}
	if refused != maxLanes || len(r.taken) != maxLanes {
		t.Errorf("got %d clients refused and %d takings, want %d of both", refused, len(r.taken), maxLanes)
	}
}
