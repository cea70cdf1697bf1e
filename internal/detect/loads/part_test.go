package loads

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
)

// touching is a process that touches a mapped model at a constant rate, and copies it to a GPU.
type touching struct {
	steady
	share  float64       // of the model that it touches between the two moments
	copied float64       // of what it touches, to the GPU
	drives bool          // it holds memory of a GPU
	more   time.Duration // when it takes 2 GiB more; 0 for never
	lists  time.Duration
}

const libraries = 200 << 20

func (c touching) touched(at time.Duration) float64 {
	return c.share * modelSize * (min(max(at, c.from), c.to) - c.from).Seconds() / (c.to - c.from).Seconds()
}

// load returns what is found. Mappings are listed at intervals of lists.
func (c touching) load() (all []detect.Found) {
	d := New("job")
	listed, before := time.Second, time.Duration(0)
	mapped := func(at time.Duration) bool { return at > c.from && at < c.to+200*ms }
	for last, at := time.Second, 1100*ms; at < 3*time.Minute; last, at = at, at+100*ms {
		if at-listed >= c.lists {
			listed, before = at, listed
		}
		read := at.Truncate(time.Second) // when the memory of the GPU was
		f := &detect.Facts{Job: "job", At: at, Last: last, Past: c, HasGPU: c.drives, Listening: 0,
			GPUMemory: context + uint64(c.copied*c.touched(read)),
			Processes: []detect.Process{{PID: 7, Drives: c.drives, Memory: libraries + int64(c.touched(at)), Started: 500 * ms,
				Last: last, At: at, MapsLast: before}}}
		if c.more > 0 && read >= c.more {
			f.GPUMemory += 2 << 30
		}
		if mapped(listed) {
			f.Files = []detect.File{{PID: 7, FD: -1, Path: "/m/model.safetensors", Size: modelSize, Mapped: modelSize}}
		}
		all = append(all, d.Look(f)...)
	}
	return all
}

// A rank of several reads a part of each tensor. It loads the model if this comes to its GPU.
func TestPartOfARank(t *testing.T) {
	at := steady{5 * time.Second, 9 * time.Second, 0, detect.ReadBytes}
	short := steady{5100 * ms, 5800 * ms, 0, detect.ReadBytes}
	for name, c := range map[string]struct {
		touching
		want int
	}{
		"a quarter, copied":     {touching{at, 0.25, 1, true, 0, 100 * ms}, 1},
		"a quarter, not copied": {touching{at, 0.25, 0, true, 0, 100 * ms}, 0},
		"a quarter, then more":  {touching{short, 0.25, 1, true, short.to + 300*ms, 100 * ms}, 1},
		"more, long after":      {touching{short, 0.25, 0, true, short.to + 4*time.Second, 100 * ms}, 0},
		"a third of it copied":  {touching{at, 0.25, 0.3, true, 0, 100 * ms}, 0},
		"without a GPU":         {touching{at, 0.25, 0, false, 0, 100 * ms}, 0},
		"a look at the header":  {touching{at, 0.04, 1, true, 0, 100 * ms}, 0},
		"all of it, not copied": {touching{at, 1, 0, true, 0, 100 * ms}, 1},
	} {
		all := c.load()
		if len(all) != c.want {
			t.Errorf("%s: got %+v, want %d", name, all, c.want)
			continue
		}
		if c.want == 1 && ((all[0].Start-c.from).Abs() > 300*ms || (all[0].End-c.to).Abs() > 400*ms) {
			t.Errorf("%s: got %v to %v, want %v to %v", name, all[0].Start, all[0].End, c.from, c.to)
		}
	}
}

// Mappings are listed more rarely than open files. What was touched meanwhile counts, and says when the load began.
func TestMappingListedLate(t *testing.T) {
	for _, from := range []time.Duration{5100 * ms, 5500 * ms, 5900 * ms} {
		at := steady{from, from + 1600*ms, 0, detect.ReadBytes}
		all := touching{at, 1, 1, true, 0, time.Second}.load()
		if len(all) != 1 {
			t.Errorf("from %v: got %+v, want one load", from, all)
			continue
		}
		if got := all[0]; (got.Start-at.from).Abs() > 200*ms || (got.End-at.to).Abs() > 300*ms ||
			got.Bytes < 0.9*modelSize {
			t.Errorf("from %v: got %v to %v, %d bytes, want %v to %v", from, got.Start, got.End, got.Bytes, at.from, at.to)
		} else if off := (got.Start - at.from).Abs(); off > got.StartOpen/2+100*ms ||
			from == 5900*ms && got.StartOpen > 500*ms {
			t.Errorf("from %v: got a start that is %v off and %v left open", from, off, got.StartOpen)
		}
	}
}
