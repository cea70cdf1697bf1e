package alert

import (
	"math"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Limits define when a condition begins and ends. Two thresholds and two hold times prevent flapping.
type Limits struct {
	Raise float64 // the condition begins at or above this value
	Clear float64 // it ends at or below this value, which is lower

	RaiseAfter  time.Duration // time without a break at or above Raise before the condition begins; 0 for at once
	ClearAfter  time.Duration // time without a break at or below Clear before it ends
	MinInterval time.Duration // minimum time between two changes
}

// change is the result of an evaluation.
type change uint8

const (
	unchanged change = iota
	raised           // the condition has begun
	resolved         // the condition has ended
)

// oneIf is the value of a condition that holds or does not.
func oneIf(holds bool) float64 {
	if holds {
		return 1
	}
	return 0
}

// maxGap is the longest time between two evaluations over which the value is assumed to have held. A machine that was
// suspended for an hour was not hot for that hour.
const maxGap = 10 * time.Second

// condition is the state of one condition of one device. The zero value is a condition that has not begun. It is not
// safe for concurrent use.
type condition struct {
	active    bool
	pending   bool          // the value has crossed the threshold for the next change
	since     time.Duration // when it did
	evaluated bool          // at least once
	last      time.Duration // the last evaluation
	changed   bool          // at least once
	changedAt time.Duration // the last change
	edge      time.Duration // when the value crossed the threshold before the last change
}

// evaluate takes a value measured at a time of the monotonic clock. NaN means that the value is unknown: nothing
// changes, and hold times start again. Values out of order are ignored.
func (c *condition) evaluate(l *Limits, at time.Duration, value float64) change {
	if c.evaluated && at <= c.last {
		return unchanged
	}
	if c.evaluated && at-c.last > maxGap {
		c.pending = false
	}
	c.evaluated, c.last = true, at
	crossed, hold := value >= l.Raise, l.RaiseAfter
	if c.active {
		crossed, hold = value <= l.Clear, l.ClearAfter
	}
	if !crossed || math.IsNaN(value) {
		c.pending = false
		return unchanged
	}
	if !c.pending {
		c.pending, c.since = true, at
	}
	if at-c.since < hold || c.changed && at-c.changedAt < l.MinInterval {
		return unchanged
	}
	c.active, c.pending = !c.active, false
	c.changed, c.changedAt, c.edge = true, at, c.since
	if c.active {
		return raised
	}
	return resolved
}

// maxDevices bounds the devices of one kind. No machine has more.
const maxDevices = 1024

// group is one condition of many devices, which come and go. It is not safe for concurrent use.
type group[K comparable] struct {
	limits Limits

	members map[K]*member
	round   uint64
}

type member struct {
	condition
	round uint64        // of the last evaluation
	began time.Duration // condition.edge of the last change to active
}

// transition is the change of one device's condition.
type transition[K comparable] struct {
	key      K
	resolved bool          // else it has begun
	edge     time.Duration // when it began or ended
	began    time.Duration // when it began
	removed  bool          // it ended because the device is gone
}

func newGroup[K comparable](kind Kind) *group[K] {
	return &group[K]{limits: LimitsOf[kind], members: map[K]*member{}}
}

// evaluate takes the value of one device; see condition.evaluate. Devices over maxDevices are ignored.
func (g *group[K]) evaluate(key K, at time.Duration, value float64) (t transition[K], changed bool) {
	m := g.members[key]
	if m == nil {
		if len(g.members) >= maxDevices {
			return t, false
		}
		m = &member{}
		g.members[key] = m
	}
	m.round = g.round
	return g.update(key, m, at, value)
}

func (g *group[K]) update(key K, m *member, at time.Duration, value float64) (t transition[K], changed bool) {
	switch m.evaluate(&g.limits, at, value) {
	case unchanged:
		return t, false
	case raised:
		m.began = m.edge
	case resolved:
	}
	return transition[K]{key: key, resolved: !m.active, edge: m.edge, began: m.began}, true
}

// endRound ends a round of evaluations. Devices that were not evaluated in it are gone: their conditions end after
// Limits.ClearAfter. A gone device without a condition is forgotten once MinInterval has passed since its last change.
func (g *group[K]) endRound(at time.Duration) (ended []transition[K]) {
	for key, m := range g.members {
		switch {
		case m.round == g.round:
		case m.active:
			if t, changed := g.update(key, m, at, math.Inf(-1)); changed {
				t.removed = true
				ended = append(ended, t)
			}
		case !m.changed || at-m.changedAt >= g.limits.MinInterval:
			delete(g.members, key)
		}
	}
	g.round++
	return ended
}

// active reports whether the condition of a device has begun and not ended.
func (g *group[K]) active(key K) bool {
	m := g.members[key]
	return m != nil && m.active
}

// has reports whether the group has state of a device.
func (g *group[K]) has(key K) bool { return g.members[key] != nil }

// LimitsOf has the limits of each kind except IOStorm. docs/events.md has the same numbers. It is read-only.
var LimitsOf = map[Kind]Limits{
	// Degrees Celsius above the temperature at which the GPU slows down, or above defaultSlowdown if it reports none.
	GPUHot: {
		Raise: -hotMargin, Clear: -hotMargin - 5,
		RaiseAfter: 10 * time.Second, ClearAfter: 30 * time.Second, MinInterval: time.Minute,
	},
	// The share of the last 30 s with reduced clocks.
	GPUThrottled: {Raise: 0.2, Clear: 0.05, ClearAfter: 30 * time.Second, MinInterval: time.Minute},
	// 1 while the GPU cannot be read.
	GPULost: {Raise: 1, ClearAfter: 10 * time.Second, MinInterval: time.Minute},
	// 1 while this program has let go of the GPU.
	GPUReleased: {Raise: 1, ClearAfter: 10 * time.Second, MinInterval: time.Minute},
	// 1 in an evaluation with new XIDs of the code.
	GPUError: {Raise: 1, ClearAfter: 10 * time.Minute, MinInterval: time.Minute},
	// 1 while the drive should be replaced. Drives are read every ten minutes.
	DiskFailing: {Raise: 1, ClearAfter: 30 * time.Minute, MinInterval: 30 * time.Minute},
	// 1 while the drive is missing.
	DiskVanished: {Raise: 1, ClearAfter: time.Minute, MinInterval: 10 * time.Minute},
	// The saturation of the last 60 s; see disk.go.
	DiskSaturated: {Raise: 1, Clear: 0.6, ClearAfter: time.Minute, MinInterval: time.Minute},
	// 1 while the part fails.
	AgentDegraded: {Raise: 1, RaiseAfter: time.Minute, ClearAfter: time.Minute, MinInterval: time.Minute},
}

// Temperatures in degrees Celsius.
const (
	hotMargin       = 3.0 // a GPU is hot this far below its slowdown temperature
	defaultSlowdown = 88  // for a GPU that reports no limit, so that it is hot at 85
	maxTemperature  = 150 // readings above are garbage: a failing GPU may report any number
)

// stormTimeout is the time without slow windows after which an I/O storm has ended.
const stormTimeout = time.Minute

// throttleReasons are the reasons for reduced clocks that point to a fault of cooling or power supply. The power cap is
// left out: a busy GPU runs at its power cap.
var throttleReasons = [...]sample.GPUQuantity{
	sample.GPUThrottledThermal, sample.GPUThrottledHWThermal, sample.GPUThrottledPowerBrake,
}

// applicationXIDs are the XIDs that a program causes, rather than the hardware (NVIDIA's table of XID errors).
var applicationXIDs = [...]int{13, 31, 43, 45}

// marks is the number of readings that a lookback holds: enough to cover one and a half times its length.
const marks = 18

// lookback holds readings of cumulative counters, one every twelfth of its length, for differences over that length.
type lookback[T any] struct {
	ring    [marks]mark[T]
	n, next int
}

type mark[T any] struct {
	at    time.Duration
	value T
}

// due reports whether length/12 has passed since the newest reading, or there is no reading.
func (l *lookback[T]) due(at, length time.Duration) bool {
	return l.n == 0 || at-l.newest().at >= length/12
}

func (l *lookback[T]) newest() *mark[T] { return &l.ring[(l.next+marks-1)%marks] }

func (l *lookback[T]) add(at time.Duration, value T) {
	l.ring[l.next] = mark[T]{at, value}
	l.next, l.n = (l.next+1)%marks, min(l.n+1, marks)
}

// before returns the newest reading that is at least length old, or nil if there is no reading that is between one and
// one and a half times length old.
func (l *lookback[T]) before(at, length time.Duration) *mark[T] {
	for i := 1; i <= l.n; i++ {
		m := &l.ring[(l.next+marks-i)%marks]
		if age := at - m.at; age >= length {
			if age <= length+length/2 {
				return m
			}
			return nil
		}
	}
	return nil
}

func (l *lookback[T]) reset() { l.n, l.next = 0, 0 }
