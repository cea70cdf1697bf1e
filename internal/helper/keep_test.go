package helper

import (
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A helper that ends again and again is started ever more slowly, and soon again after it has run for long. The agent
// hears of each end, with the reason if the helper has not sent it.
func TestKeepBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lives := slices.Repeat([]time.Duration{0}, 9)
		lives = append(lives, healthy, 0)
		whys := slices.Repeat([]string{"", said, "no task"}, 4)
		want := []time.Duration{1, 2, 4, 8, 16, 32, 60, 60, 60, 1, 2}
		var delays []time.Duration
		var reported []string
		done := make(chan struct{})
		go func() {
			defer close(done)
			var ended time.Time
			n := 0
			keep(func() string {
				if n > 0 {
					delays = append(delays, time.Since(ended)/time.Second)
				}
				if n == len(lives) {
					runtime.Goexit() // as the end of the process
				}
				time.Sleep(lives[n])
				n++
				ended = time.Now()
				return whys[n-1]
			}, func(why string) { reported = append(reported, why) })
		}()
		<-done
		if !slices.Equal(delays, want) {
			t.Errorf("got delays of %v s, want %v", delays, want)
		}
		if all := []string{"", "no task", "", "no task", "", "no task", ""}; !slices.Equal(reported, all) {
			t.Errorf("got the reports %q, want %q", reported, all)
		}
	})
}
