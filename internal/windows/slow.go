package windows

import (
	"cmp"
	"time"

	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/detect"
	"github.com/stallspan/stallspan/internal/source/disk"
	"github.com/stallspan/stallspan/internal/state/baseline"
	"github.com/stallspan/stallspan/internal/window"
)

// limitOf returns the limit of windows of a kind; 0 for none.
func limitOf(s config.Slow, k window.Kind) time.Duration {
	switch k {
	case window.ModelLoad:
		return s.Load
	case window.Epoch:
		return s.Epoch
	}
	return 0
}

// SlowJudge compares the length of windows with limits and with earlier windows. It is safe for concurrent use.
type SlowJudge struct {
	slow  config.Slow
	store *baseline.Store // nil without baselines
	disks *disk.Source    // nil for a recording
}

// NewSlowJudge opens the file of baselines. note receives its errors.
func NewSlowJudge(s config.Slow, disks *disk.Source, note func(source string, err error)) *SlowJudge {
	j := &SlowJudge{slow: s, disks: disks}
	if s.HasBaseline() {
		j.store = baseline.Open(s.Baseline, func(err error) { note("baselines", err) })
	}
	return j
}

// Save waits until the file of baselines holds all windows so far: for five seconds at most.
func (j *SlowJudge) Save() { j.store.Save() }

// Close closes the file of baselines.
func (j *SlowJudge) Close() { j.store.Close() }

// Running judges a window that is open.
func (j *SlowJudge) Running(r *window.Report) {
	r.ApplyLimits(j.limits(r, j.key(r, false)))
}

// Final judges a window that has ended, learns its length, and returns the limits for a recording; nil for none. The
// baseline is shared by programs with different factors, so what it learns depends on the default factor alone.
func (j *SlowJudge) Final(r *window.Report) *window.Limits {
	key := j.key(r, true)
	limits := j.limits(r, key)
	r.ApplyLimits(limits)
	if j.slow.Learns(r.Source != window.Announced) && baseline.Learnable(r) {
		slow := r.SlowReason == window.SlowThreshold || limits.Baseline != nil && r.Duration() > limits.Baseline.Limit(0)
		j.store.Learn(key, r.Duration(), slow, r.Start.Wall.Add(r.Duration()))
	}
	if limits.Set == 0 && limits.Baseline == nil {
		return nil
	}
	recorded := &window.Limits{Set: limits.Set, Baseline: limits.Baseline}
	if limits.Baseline != nil {
		recorded.Factor = cmp.Or(limits.Factor, window.SlowFactor) // the default may differ when it is replayed
	}
	return recorded
}

func (j *SlowJudge) limits(r *window.Report, key baseline.Key) window.Limits {
	limits := window.Limits{Set: limitOf(j.slow, r.Kind), Factor: j.slow.Factor}
	if usual, known := j.store.Baseline(key); known {
		limits.Baseline = &usual
	}
	return limits
}

// key returns the baseline that a window is compared with. It is "" for a window with approximate bounds or of several
// epochs, and while it is unknown whether a load comes from memory.
func (j *SlowJudge) key(r *window.Report, ended bool) baseline.Key {
	whole := ended && !r.Unfinished
	uncertain := r.ApproximateBounds || r.Epochs > 1 || r.Source == window.Detected && !detect.Precise(r.Kind)
	if j.store == nil || uncertain || r.Kind == window.ModelLoad && !whole && !r.Seen.HasCached {
		return ""
	}
	kind := ""
	if r.Kind == window.ModelLoad && len(r.Disks) > 0 && j.disks != nil {
		kind = j.disks.KindOf(busiestDisk(r))
	}
	return baseline.KeyOf(r, kind)
}

// busiestDisk returns the disk with the highest number of bytes read.
func busiestDisk(r *window.Report) string {
	first := 0
	for i := range r.Disks {
		if r.Disks[i].ReadBytes > r.Disks[first].ReadBytes {
			first = i
		}
	}
	return r.Disks[first].Name
}
