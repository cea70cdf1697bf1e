package trust

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"
)

// A client gets a quarter of the places, and this program itself any that is free.
func TestPlaces(t *testing.T) {
	p := NewPlaces(8)
	for i := range 2 {
		if err := p.Take("a"); err != nil {
			t.Fatalf("place %d: got %v, want it", i, err)
		}
	}
	if err := p.Take("a"); !errors.Is(err, ErrShare) {
		t.Errorf("more than a quarter: got %v, want %v", err, ErrShare)
	}
	for range 6 {
		if err := p.Take(""); err != nil {
			t.Fatalf("this program: got %v, want a place", err)
		}
	}
	if err := p.Take("b"); !errors.Is(err, ErrFull) {
		t.Errorf("one too many: got %v, want %v", err, ErrFull)
	}
	p.Release("a")
	if err := p.Take("b"); err != nil {
		t.Errorf("after a release: got %v, want a place", err)
	}
	if p.Taken() != 8 {
		t.Errorf("got %d places taken, want 8", p.Taken())
	}
}

// Clients that are gone leave nothing in memory.
func TestReleased(t *testing.T) {
	p := NewPlaces(2)
	for i := range 100 {
		if err := p.Take(strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
		p.Release(strconv.Itoa(i))
	}
	if len(p.by) != 0 || p.Taken() != 0 {
		t.Errorf("got %d clients, %d places, want none", len(p.by), p.Taken())
	}
}

// Who is root in a container may be any user in it, and gets no further share by that.
func TestUsersOfAContainerShare(t *testing.T) {
	p, r := NewPlaces(8), NewRate(8, time.Minute)
	of := func(uid int) string { return fmt.Sprintf("uid %d in container 0123456789ab", uid) }
	for uid := range 2 {
		if err := errors.Join(p.Take(of(uid)), r.Take(of(uid), 0)); err != nil {
			t.Fatalf("place %d: got %v, want it", uid, err)
		}
	}
	if err := p.Take(of(2)); !errors.Is(err, ErrShare) {
		t.Errorf("a third user: got %v, want %v", err, ErrShare)
	}
	if err := r.Take(of(2), 0); !errors.Is(err, ErrShare) {
		t.Errorf("a third user's rate: got %v, want %v", err, ErrShare)
	}
	for _, other := range []string{"uid 0", "uid 0 in container ba9876543210"} {
		if err := errors.Join(p.Take(other), r.Take(other, 0)); err != nil {
			t.Errorf("%s: got %v, want a place", other, err)
		}
	}
	p.Release(of(7))
	if err := p.Take(of(2)); err != nil {
		t.Errorf("after a release: got %v, want a place", err)
	}
}
