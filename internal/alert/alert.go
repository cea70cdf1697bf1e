// Package alert detects conditions of the machine, such as a hot GPU or a failing drive. It returns one event when a
// condition begins and one when it has ended.
package alert

import (
	"math"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/trust"
)

// Kind is the kind of a condition. LimitsOf has the limits of each.
type Kind string

const (
	GPUHot        Kind = "gpu_hot"
	GPUThrottled  Kind = "gpu_throttled"
	GPULost       Kind = "gpu_lost"
	GPUReleased   Kind = "gpu_released"
	GPUError      Kind = "gpu_error" // an XID, one condition for each code
	DiskFailing   Kind = "disk_failing"
	DiskVanished  Kind = "disk_vanished"
	DiskSaturated Kind = "disk_saturated"
	AgentDegraded Kind = "agent_degraded"
	IOStorm       Kind = "io_storm" // its end only: the report of the window that showed the storm carries its beginning
)

// Event is the beginning or the end of a condition.
type Event struct {
	Kind     Kind
	Resolved bool      // the condition has ended
	At       time.Time // when it began or ended, which precedes the event by the hold time of the limits
	Began    time.Time // of a resolved condition: when it began
	Severe   bool      // an operator must act, rather than look; a resolved event has the value of its beginning
	Message  string    // one sentence with names that devices report: it may hold any byte

	GPU      *sample.GPU   // nil if the condition is not one of a GPU
	Drive    *sample.Drive // nil if the condition is not one of a drive
	Disk     string        // system.device.name, or ""
	Part     string        // the part of this program that fails, or ""
	Memory   bool          // Value is the temperature of the GPU's memory
	Reason   string        // why the clocks are low, as named by sample.GPUQuantity; why a part of the program fails
	Code     int           // XID code
	Count    uint64        // XIDs since the previous event; windows in a storm
	Lost     bool          // the driver reports the GPU as lost; false if the driver does not answer
	HasValue bool          // Value and Limit are set
	Value    float64       // the measured value, in the unit of Limit
	Limit    float64       // the value at which the condition begins
}

// Watcher detects the conditions of one machine. The zero value is ready. It is not safe for concurrent use. Its memory
// is bounded by the number of devices, at most maxDevices of each kind.
type Watcher struct {
	now    sample.Stamp
	events []Event

	hot       *group[sensor]
	throttled *group[string]
	lost      *group[string]
	released  *group[string]
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
	w.released = newGroup[string](GPUReleased)
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

// BoardSize is how many events a Board holds.
const BoardSize = 256

// Posted is an event on a Board.
type Posted struct {
	Line   []byte // of JSON
	Client string // whose window it is about, as window.Window.Client; "" for other events
	Lane   string // whose place it takes: see trust.Queue
}

// Board holds the newest events: when it is full, who has most loses the oldest. Each reader reads at its own pace; a
// slow reader misses events and gets their number. Post never waits. The zero value is ready. It is safe for concurrent
// use.
type Board struct {
	mu      sync.Mutex
	events  trust.Queue[Posted]
	changed chan struct{}
}

// Post adds an event.
func (b *Board) Post(e Posted) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events.Size = BoardSize
	b.events.Add(e.Lane, 1, e)
	if b.changed != nil {
		close(b.changed)
		b.changed = nil
	}
}

// Last returns the number of the first of the newest n events.
func (b *Board) Last(n int) uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.events.Last(n)
}

// Read returns at most 32 events from number from on, the number to continue from, and how many events in between are
// no longer held. If there are no events yet, changed is closed when there are.
func (b *Board) Read(from uint64) (events []Posted, next, missed uint64, changed <-chan struct{}) {
	const most = 32
	b.mu.Lock()
	defer b.mu.Unlock()
	events, next = b.events.From(from, most)
	if len(events) == 0 {
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		changed = b.changed
	}
	return events, next, next - from - uint64(len(events)), changed
}
