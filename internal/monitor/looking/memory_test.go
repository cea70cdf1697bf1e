package looking

import (
	"testing"
	"time"

	"github.com/stallspan/stallspan/internal/detect"
	"github.com/stallspan/stallspan/internal/monitor/sampling"
)

// cards are GPUs whose memory is known, and those that are watched.
type cards struct {
	used    map[string]uint64
	read    time.Duration
	watched []string
	until   time.Duration
}

func (c *cards) WatchMemory(ids []string, until time.Duration) { c.watched, c.until = ids, until }

func (c *cards) Memory(gpu string) (uint64, time.Duration) {
	used, known := c.used[gpu]
	if !known {
		return 0, 0
	}
	return used, c.read
}

// holder is a detector that notes what is known of memory.
type holder struct {
	used uint64
	at   time.Duration
}

func (h *holder) Look(f *detect.Facts) []detect.Found {
	h.used, h.at = f.GPUMemory, f.GPUMemoryAt
	return nil
}
func (*holder) Close(*detect.Facts) []detect.Found { return nil }
func (*holder) Busy() bool                         { return false }

// watching are Jobs that only exist.
type watching struct{}

func (watching) Watch(string, bool)       {}
func (watching) Keep(string)              {}
func (watching) Left(string) bool         { return false }
func (watching) Release(string)           {}
func (watching) EachStirred(func(string)) {}

// The memory of the GPUs of a job is read often while a load may be going on, and taken from the newest reading.
func TestMemoryOfGPUs(t *testing.T) {
	r, err := sampling.New(sampling.Config{Interval: 100 * time.Millisecond}, &sampling.Problems{})
	if err != nil {
		t.Fatal(err)
	}
	now := 5 * time.Minute
	d := &holder{}
	gpus := &cards{used: map[string]uint64{"GPU-1": 7 << 30, "GPU-2": 9 << 30}, read: now - 30*time.Millisecond}
	l := New(Config{Root: t.TempDir(), Readings: r, Jobs: watching{}, GPUs: gpus, Found: func([]detect.Found) {},
		New: func(string) detect.Detector { return d }, Now: func() time.Duration { return now }})
	j := &job{look: sampling.JobLook{ID: "job", GPUs: []string{"GPU-1"}, GPUMemory: 5}, detector: d,
		processes: map[int]*program{}, owners: map[int]string{}}
	look := func() { l.look(j, now) }
	if look(); d.used != 7<<30 || d.at != gpus.read {
		t.Errorf("got %d bytes of %v, want those of the newest reading", d.used, d.at)
	}
	gpus.read = now - 2*time.Second
	if look(); d.used != 5 || d.at != 0 {
		t.Errorf("got %d bytes of %v, want those of the row: the reading is old", d.used, d.at)
	}
	gpus.read, j.look.GPUs = now, []string{"GPU-1", "GPU-3"}
	if look(); d.used != 5 || d.at != 0 {
		t.Errorf("got %d bytes of %v, want those of the row: one GPU is not known", d.used, d.at)
	}
	for name, c := range map[string]struct {
		since, alert time.Duration
		busy         bool
		want         int
	}{
		"young":           {now - 10*time.Second, 0, false, 1},
		"quiet":           {now - time.Minute, 0, false, 0},
		"begins to read":  {now - time.Minute, now + 500*time.Millisecond, false, 1},
		"may load":        {now - time.Minute, 0, true, 1},
		"has read before": {now - time.Minute, now - time.Second, false, 0},
	} {
		gpus.watched, gpus.until = nil, 0
		j.look.GPUs, j.look.Since, j.alert, j.busy = []string{"GPU-1"}, c.since, c.alert, c.busy
		l.watchMemory(j, now)
		if len(gpus.watched) != c.want || c.want > 0 && gpus.until <= now+time.Second {
			t.Errorf("%s: got %v watched until %v, want %d GPUs for over a second", name, gpus.watched, gpus.until-now, c.want)
		}
	}
}
