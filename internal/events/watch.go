package events

import (
	"time"

	"github.com/stallspan/stallspan/internal/condition"
	"github.com/stallspan/stallspan/internal/sample"
)

// Watch looks for the conditions of one machine. The zero value is ready. It is not safe for concurrent use, and what it
// keeps is bounded by the devices that there are, at most 1024 of each kind.
type Watch struct {
	now  sample.Stamp
	told []Event

	hot      *condition.Group[sensor]
	throttle *condition.Group[string]
	lost     *condition.Group[string]
	wrong    *condition.Group[fault]
	failing  *condition.Group[string]
	vanished *condition.Group[string]
	full     *condition.Group[string]

	cards  map[string]*card // by GPU.ID
	disks  map[string]*disk // by name
	drives map[string]sample.Drive
	parts  Parts
}

// most bounds the maps above. No machine has more of either.
const most = 1024

func group[K comparable](kind Kind) *condition.Group[K] {
	return &condition.Group[K]{Limits: Table[kind]}
}

func (w *Watch) open() {
	if w.hot != nil {
		return
	}
	w.hot, w.throttle, w.lost = group[sensor](GPUHot), group[string](GPUThrottled), group[string](GPULost)
	w.wrong = group[fault](GPUError)
	w.failing, w.vanished, w.full = group[string](DiskFailing), group[string](DiskVanished), group[string](DiskSaturated)
	w.cards, w.disks, w.drives = map[string]*card{}, map[string]*disk{}, map[string]sample.Drive{}
}

// Look gives what began and what ended, from the newest readings of this moment and from what of this program fails. It is
// meant to be called about once a second, and costs some microseconds for a few devices. Nothing of s is kept.
func (w *Watch) Look(now sample.Stamp, s *sample.Snapshot, parts []Part) []Event {
	w.open()
	w.now, w.told = now, nil
	w.gpus(&s.GPUs)
	w.saturation(&s.Disks, s.Ceilings)
	w.health(s.Drives.Drives)
	return append(w.told, w.parts.Look(now, parts)...)
}

// say tells of a change. e has everything but the times.
func say[K comparable](w *Watch, t condition.Told[K], e Event) {
	w.told = append(w.told, timed(w.now, t, e))
}

func timed[K comparable](now sample.Stamp, t condition.Told[K], e Event) Event {
	wall := func(at time.Duration) time.Time { return now.Wall.Add(at - now.Mono) }
	e.At = wall(t.Edge)
	if e.Resolved = t.Change == condition.Resolved; e.Resolved {
		e.Began = wall(t.Began)
	}
	return e
}
