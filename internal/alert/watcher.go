package alert

import (
	"math"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Watcher detects the conditions of one machine. The zero value is ready. It is not safe for concurrent use. Its memory
// is bounded by the number of devices, at most maxDevices of each kind.
type Watcher struct {
	now    sample.Stamp
	events []Event

	hot       *group[sensor]
	throttled *group[string]
	lost      *group[string]
	xids      *group[xidKey]
	failing   *group[string]
	vanished  *group[string]
	saturated *group[string]

	gpus   map[string]*gpu  // by GPU.ID
	disks  map[string]*disk // by name
	drives map[string]sample.Drive
	parts  Parts
}

// unknown is the value of a condition that cannot be measured now.
var unknown = math.NaN()

func (w *Watcher) init() {
	if w.hot != nil {
		return
	}
	w.hot, w.throttled, w.lost = newGroup[sensor](GPUHot), newGroup[string](GPUThrottled), newGroup[string](GPULost)
	w.xids, w.failing = newGroup[xidKey](GPUError), newGroup[string](DiskFailing)
	w.vanished, w.saturated = newGroup[string](DiskVanished), newGroup[string](DiskSaturated)
	w.gpus, w.disks, w.drives = map[string]*gpu{}, map[string]*disk{}, map[string]sample.Drive{}
}

// Evaluate returns what began and what ended, from the newest readings and the state of this program's parts. Call it
// about once a second; it takes some microseconds for a few devices. It keeps no reference to s.
func (w *Watcher) Evaluate(now sample.Stamp, s *sample.Snapshot, parts []Part) []Event {
	w.init()
	w.now, w.events = now, nil
	w.evaluateGPUs(&s.GPUs)
	w.evaluateDisks(&s.Disks, s.Ceilings)
	w.evaluateDrives(s.Drives.Drives)
	return append(w.events, w.parts.Evaluate(now, parts)...)
}

// emit adds an event. e has everything except the times.
func emit[K comparable](w *Watcher, t transition[K], e Event) {
	w.events = append(w.events, withTimes(w.now, t, e))
}

func withTimes[K comparable](now sample.Stamp, t transition[K], e Event) Event {
	wall := func(at time.Duration) time.Time { return now.Wall.Add(at - now.Mono) }
	e.At, e.Resolved = wall(t.edge), t.resolved
	if t.resolved {
		e.Began = wall(t.began)
	}
	return e
}
