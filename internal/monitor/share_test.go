package monitor

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/state/drives"
)

func TestShare(t *testing.T) {
	joined, claimed := Join(), Claim("it", Config{Interval: 50 * time.Millisecond})
	same := Claim("it", Config{Interval: 50 * time.Millisecond, Root: "/"})
	start := func(s *Share) *Monitor {
		t.Helper()
		m, err := s.Start()
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	first := start(joined) // before the one that it joins
	if first.Interval() != 50*time.Millisecond {
		t.Errorf("sampled each %v", first.Interval())
	}
	if start(claimed) != first || start(same) != first {
		t.Error("not one monitor")
	}
	claimed.Stop()
	claimed.Stop()
	joined.Stop()
	if again := Join(); start(again) != first {
		t.Error("it ended while one used it")
	} else {
		again.Stop()
	}
	same.Stop()
	if shared.monitor != nil || shared.users != 0 || len(shared.claims) != 0 {
		t.Errorf("left over: %+v", &shared)
	}

	alone := Join()
	if m := start(alone); m == first || m.Interval() != config.DefaultInterval {
		t.Errorf("after a restart: got the interval %v, want %v", m.Interval(), config.DefaultInterval)
	}
	alone.Stop()
}

func TestShareDiffers(t *testing.T) {
	one, other := Claim("it", Config{}), Claim("it", Config{Interval: time.Second})
	_, err := one.Start()
	if !errors.Is(err, ErrDiffer) {
		t.Errorf("got %v, want %v", err, ErrDiffer)
	}
	t.Log(err)
	one.Stop()
	if m, err := other.Start(); err != nil || m.Interval() != time.Second {
		t.Errorf("alone: %v", err)
	}
	late := Claim("it", Config{Root: "/elsewhere", Interval: time.Second})
	if _, err := late.Start(); !errors.Is(err, ErrDiffer) {
		t.Errorf("got %v, want %v", err, ErrDiffer)
	}
	late.Stop()
	other.Stop()

	joined := Join()
	if _, err := joined.Start(); err != nil {
		t.Fatal(err)
	}
	claim := Claim("it", Config{Interval: time.Second})
	if _, err := claim.Start(); !errors.Is(err, ErrDiffer) { // the running monitor keeps its settings
		t.Errorf("got %v, want %v", err, ErrDiffer)
	}
	claim.Stop()
	joined.Stop()
}

// When windows are slow is one component's word for all of them, or the same word of several.
func TestShareLimits(t *testing.T) {
	slow := config.Slow{Load: time.Second}
	one, joined, same, other := Claim("one", Config{}), Join(), Join(), Join()
	one.Limit("one", config.Slow{})
	joined.Limit("joined", slow)
	same.Limit("same", slow)
	m, err := one.Start()
	if err != nil || m.config.Slow != slow {
		t.Fatalf("got %+v, %v, want a monitor with %+v", m, err, slow)
	}
	if again, err := same.Start(); err != nil || again != m {
		t.Errorf("got %p, %v, want %p", again, err, m)
	}
	other.Limit("other", config.Slow{Load: time.Minute})
	if _, err := other.Start(); !errors.Is(err, ErrDiffer) {
		t.Errorf("got %v, want %v", err, ErrDiffer)
	}
	for _, s := range []*Share{one, joined, same, other} {
		s.Stop()
	}
	if len(shared.limits) != 0 || shared.monitor != nil {
		t.Errorf("left over: %+v", &shared)
	}
}

// Who says how drives are asked is heard before those who say nothing, and two must say the same.
func TestShareOfDrives(t *testing.T) {
	asks := func(sudo, auto bool) *Drives { return &Drives{Ask: drives.Options{Sudo: sudo}, Auto: auto} }
	for i, test := range []struct {
		claims []*Drives
		want   *Drives
		wrong  bool
	}{
		{[]*Drives{nil, nil}, nil, false},
		{[]*Drives{nil, asks(false, true)}, asks(false, true), false},
		{[]*Drives{asks(false, true), asks(true, false), nil, asks(false, true)}, asks(true, false), false},
		{[]*Drives{asks(true, false), asks(true, false)}, asks(true, false), false},
		{[]*Drives{asks(true, false), asks(false, false)}, nil, true},
	} {
		var all []*Share
		for _, d := range test.claims {
			all = append(all, Claim("it", Config{Drives: d}))
		}
		shared.mu.Lock()
		got, err := all[0].drives()
		shared.mu.Unlock()
		if (err != nil) != test.wrong || test.wrong && !errors.Is(err, ErrDiffer) || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%d: got %+v, %v, want %+v, an error: %v", i, got, err, test.want, test.wrong)
		}
		for _, s := range all {
			s.Stop()
		}
	}
}
