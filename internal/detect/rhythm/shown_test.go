package rhythm

import (
	"fmt"
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
)

// What says nothing of a data set is left out: files without a known size, segments of shared memory, and those that
// workers inherit. What is remembered is bounded.
func TestShown(t *testing.T) {
	key := func(n uint64) detect.FileKey { return detect.FileKey{Device: 1, Inode: n} }
	var s shown
	s.add([]opened{
		{at: second, key: key(1), size: 4 << 20, path: "/data/a"},
		{at: second, key: key(2), path: "/data/without-size"},
		{at: second, key: key(3), size: 4 << 20, path: "/dev/shm/torch_1"},
		{at: second, key: key(4), size: 4 << 20, path: "/dev/shm/data/b"},
		{at: second, key: key(5), size: 4 << 20, path: "/data/log", was: true},
		{at: second, size: 4 << 20, path: "/data/without-key"},
		{at: 9 * second, key: key(6), size: 4 << 20, path: "/data/later"},
	})
	if k := s.sketch(0, 5*second, 16<<20); len(k.files) != 2 || k.share != 0.5 {
		t.Errorf("got %d files that are %v of what was read, want two and half", len(k.files), k.share)
	}
	if k := s.sketch(0, 5*second, 4<<20); k.share != 0 {
		t.Errorf("got a share of %v of files that were read in part, want none", k.share)
	}
	for i := range 3 * maxShown {
		s.add([]opened{{at: 20 * second, key: key(uint64(100 + i)), size: 1 << 20, path: fmt.Sprint("/data/", i)}})
	}
	if k := s.sketch(0, 30*second, 1<<40); len(s.all) != maxShown || len(k.files) != maxSketch || k.all {
		t.Errorf("got %d opens and %d files, want %d and %d", len(s.all), len(k.files), maxShown, maxSketch)
	}
}

// The bytes of a new process are in the job's counters only once a scan has found it. It opened nothing before it
// began.
func TestOpenOfANewProcess(t *testing.T) {
	past := &story{reads: []reading{{0, second, 5e6, 0}}}
	f := &look{Facts: &detect.Facts{At: 10 * second, Last: 9 * second, Past: past,
		Processes: []detect.Process{{PID: 1}, {PID: 2, Started: 9400 * time.Millisecond}}}}
	for pid, want := range map[int]time.Duration{1: 9 * second, 2: 9400 * time.Millisecond} {
		at, _ := began(f, &detect.File{PID: pid, Offset: 1e6})
		if at < want || at > want+20*time.Millisecond {
			t.Errorf("process %d: got an open at %v, want %v", pid, at, want)
		}
	}
}
