package sample

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// broken is a source that panics a number of times.
type broken struct{ times, reads int }

func (b *broken) Read(s *Sample) error {
	b.reads++
	s.Cores = append(s.Cores, Core{})
	if b.times--; b.times >= 0 {
		panic("index out of range")
	}
	return nil
}

type sound struct{}

func (sound) Read(*Sample) error { return errors.New("sound") }

// A source that panics pauses, longer each time. The others are read at every tick, and the error says what happened.
func TestPanicOfASource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &broken{times: 3}
		s := NewSampler(100*time.Millisecond, []Named{{"broken", b}, {"sound", sound{}}})
		reads, failed, empty, before := 0, 0, true, Panics()
		for range 100 { // ten seconds: the pauses are 1, 2 and 4 s
			s.Read(func(source string, read *Sample, err error) {
				switch {
				case source == "sound":
					reads++
				case err != nil && strings.Contains(err.Error(), "index out of range"):
					failed++
					empty = empty && len(read.Cores) == 0
				}
			})
			time.Sleep(100 * time.Millisecond)
		}
		if reads != 100 || failed != 3 || !empty || b.reads < 20 || b.reads > 40 {
			t.Errorf("got %d readings of the sound source, %d errors, empty %v, %d readings of the broken one; "+
				"want 100, 3, true and some 30", reads, failed, empty, b.reads)
		}
		if got := Panics() - before; got != 3 {
			t.Errorf("got %d panics counted, want 3", got)
		}
	})
}

// A sink that panics does not end the program either.
func TestPanicOfASink(t *testing.T) {
	s := NewSampler(time.Second, []Named{{"sound", sound{}}})
	s.Read(func(string, *Sample, error) { panic("always") })
	calls := 0
	s.Read(func(string, *Sample, error) { calls++ })
	if calls != 0 {
		t.Errorf("got %d calls during the pause, want none", calls)
	}
}

func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, runs := time.Now(), 0
		var reported []error
		Restart(t.Context(), func(err error) { reported = append(reported, err) }, func() {
			if runs++; runs < 4 {
				panic(runs)
			}
		})
		if took := time.Since(began); runs != 4 || len(reported) != 3 || took != 7*time.Second {
			t.Errorf("got %d runs, reports %v after %v; want 4, 3 reports and 7s", runs, reported, took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		Restart(ctx, func(error) { cancel(); panic("also") }, func() { panic("always") })
	})
}
