package bench

import (
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/state/ceiling"
)

// A disk that is slow the first time only is neither one that is always slow nor one that is always fast.
func TestTouch(t *testing.T) {
	const parts = 20
	for name, c := range map[string]struct {
		first, later time.Duration
		slow         bool
	}{
		"a volume from a snapshot": {20 * time.Millisecond, 0, true},
		"a slow disk":              {20 * time.Millisecond, 20 * time.Millisecond, false},
		"a fast disk":              {0, 0, false},
	} {
		var mu sync.Mutex
		seen := map[int64]bool{}
		s := step{readers: 2, length: small, lasts: time.Minute, read: func(buffer []byte, offset int64) (int, error) {
			mu.Lock()
			delay := c.first
			if seen[offset] {
				delay = c.later
			}
			seen[offset] = true
			mu.Unlock()
			time.Sleep(delay)
			return len(buffer), nil
		}}
		s.offsets = inOrder(parts*large, true)
		first, err := s.run(t.Context())
		if err != nil || first.times.N != parts {
			t.Fatalf("%s: read %d of %d parts, %v", name, first.times.N, parts, err)
		}
		times, err := s.touch(t.Context(), first, inOrder(parts*large, true))
		if err != nil || times > 0 != c.slow {
			t.Errorf("%s: %.1f times as long the first time, %v; want it slow: %v", name, times, err, c.slow)
		}
	}
}

// A disk whose first touch was slow has no ceiling.
func TestSlowTouchIsNotKept(t *testing.T) {
	devices, _ := filepath.Glob("/sys/class/block/*")
	i := slices.IndexFunc(devices, func(path string) bool { return ceiling.Identify("", filepath.Base(path)) != "" })
	if i < 0 {
		t.Skip("needs a block device")
	}
	for _, slow := range []bool{true, false} {
		r := &Report{Result: &Result{Device: filepath.Base(devices[i]), OfDisk: true, Sequential: 1e9, slowTouch: slow,
			Random: []Random{{Depth: 1, AwaitP50: 0.001}}}}
		if err := r.keep(filepath.Join(t.TempDir(), "baselines.json")); err != nil || (r.KeptIn == "") != slow {
			t.Errorf("slow first touch %v: kept in %q, %v", slow, r.KeptIn, err)
		}
	}
}
