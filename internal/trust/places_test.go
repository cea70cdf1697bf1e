package trust

import (
	"errors"
	"strconv"
	"testing"
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
