package alert

import (
	"math"
	"time"
)

// maxDevices bounds the devices of one kind. No machine has more.
const maxDevices = 1024

// group is one condition of many devices, which come and go. Its zero value with limits is empty. It is not safe for
// concurrent use.
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

func newGroup[K comparable](kind Kind) *group[K] { return &group[K]{limits: LimitsOf[kind]} }

// evaluate takes the value of one device; see condition.evaluate. Devices over maxDevices are ignored.
func (g *group[K]) evaluate(key K, at time.Duration, value float64) (t transition[K], changed bool) {
	m := g.members[key]
	if m == nil {
		if len(g.members) >= maxDevices {
			return t, false
		}
		if g.members == nil {
			g.members = map[K]*member{}
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
