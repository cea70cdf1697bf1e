package helper

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A helper that ends again and again is started ever more slowly, and at once again after it has run for long.
func TestKeepBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lives := slices.Repeat([]time.Duration{0}, 9)
		lives = append(lives, healthy, 0)
		want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60, 1, 2}
		var delays []time.Duration
		var ended time.Time
		n, reported := 0, 0
		err := keep(func() (int, error) {
			if n > 0 {
				delays = append(delays, time.Since(ended)/time.Second)
			}
			if n == len(lives) {
				return exitDone, nil
			}
			time.Sleep(lives[n])
			n++
			ended = time.Now()
			return exitFrame, nil
		}, func(status int) error {
			if status != exitFrame {
				t.Errorf("reported %d, want %d", status, exitFrame)
			}
			reported++
			return nil
		})
		if err != nil || !slices.Equal(delays, want) || reported != len(lives) {
			t.Errorf("got delays of %v s, %d reports, %v; want %v, %d", delays, reported, err, want, len(lives))
		}
	})
}

func TestKeepEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("gone")
		for name, run := range map[string]func() (int, error){
			"the agent is gone":      func() (int, error) { return exitDone, nil },
			"no helper can start":    func() (int, error) { return 0, gone },
			"no agent for a report":  func() (int, error) { return exitFailed, nil },
			"killed, and not heard ": func() (int, error) { return 137, nil },
		} {
			began := time.Now()
			if err := keep(run, func(int) error { return gone }); (err == nil) != (name == "the agent is gone") {
				t.Errorf("%s: got %v", name, err)
			}
			if d := time.Since(began); d != 0 {
				t.Errorf("%s: it ends after %v, want at once", name, d)
			}
		}
	})
}
