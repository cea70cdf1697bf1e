//go:build amd64 || arm64

package bpf

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// stolen returns the steal time of all cores, as the kernel counts it.
func stolen(t *testing.T) (sum time.Duration) {
	t.Helper()
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		t.Fatal(err)
	}
	var ticks [8]int64
	line, _, _ := strings.Cut(string(text), "\n")
	_, err = fmt.Sscanf(line, "cpu %d %d %d %d %d %d %d %d", &ticks[0], &ticks[1], &ticks[2], &ticks[3], &ticks[4],
		&ticks[5], &ticks[6], &ticks[7])
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(ticks[7]) * 10 * time.Millisecond
}

// busyProgram computes for two seconds on all cores.
func busyProgram(facts) {
	until := time.Now().Add(2 * time.Second)
	var waits []func()
	for range runtime.NumCPU() {
		_, wait := thread(func() {
			for time.Now().Before(until) {
			}
		})
		waits = append(waits, wait)
	}
	for _, wait := range waits {
		wait()
	}
}

// Threads on all cores lose what the hypervisor steals, and never more than that. Other programs lose their share.
func TestStolenTime(t *testing.T) {
	s := opened(t, defaults)
	before, began := stolen(t), time.Now()
	_, events := trace(t, s, "busy")
	took := time.Since(began)
	time.Sleep(100 * time.Millisecond) // the kernel counts at ticks
	all := stolen(t) - before
	var lost, ran time.Duration
	on := map[int]time.Duration{}
	for _, e := range events {
		lost += e.Stolen
		switch e.Kind {
		case sample.ThreadIn:
			on[e.TID] = e.At
		case sample.ThreadOut:
			if on[e.TID] > 0 && e.Stolen > e.At-on[e.TID]+time.Millisecond {
				t.Errorf("got %v stolen of %v on a CPU", e.Stolen, e.At-on[e.TID])
			}
			if on[e.TID] > 0 {
				ran += e.At - on[e.TID]
			}
		}
	}
	share := float64(ran) / float64(took*time.Duration(runtime.NumCPU()))
	own := time.Duration(share * float64(all)) // if it was stolen from all programs alike
	t.Logf("%v stolen of %v on CPUs; the kernel counted %v, %v for this program", lost, ran, all, own)
	// The kernel shows whole ticks of each core.
	if most := all + time.Duration(runtime.NumCPU())*10*time.Millisecond; lost > most {
		t.Errorf("got %v stolen, want at most the %v that the kernel counted", lost, most)
	}
	if own > 200*time.Millisecond && lost < own/4 {
		t.Errorf("got %v stolen, want most of %v", lost, own)
	}
}
