package condition

import (
	"math"
	"time"
)

// mostKeys bounds what a Group watches. No machine has more devices.
const mostKeys = 1024

// Group is one condition of many devices, which come and go. Its zero value watches none yet; Limits are set before the
// first look and stay. It is not safe for concurrent use.
type Group[K comparable] struct {
	Limits Limits

	members map[K]*member
	round   uint64
	left    uint64
}

type member struct {
	State
	round uint64        // in which it was looked at last
	began time.Duration // State.Edge of the last change to Raised
}

// Told is a change of one device.
type Told[K comparable] struct {
	Key    K
	Change Change        // Raised or Resolved
	Edge   time.Duration // when it began, or was over
	Began  time.Duration // of one that is over: when it had begun
	Gone   bool          // it is over because the device is not there any more
}

// Look takes the value of one device; see State.Look. A device beyond the 1024th is left out, and counted.
func (g *Group[K]) Look(key K, at time.Duration, value float64) (told Told[K], changed bool) {
	m := g.members[key]
	if m == nil {
		if len(g.members) >= mostKeys {
			g.left++
			return told, false
		}
		if g.members == nil {
			g.members = map[K]*member{}
		}
		m = &member{}
		g.members[key] = m
	}
	m.round = g.round
	return g.look(key, m, at, value)
}

func (g *Group[K]) look(key K, m *member, at time.Duration, value float64) (told Told[K], changed bool) {
	change := m.Look(&g.Limits, at, value)
	if change == None {
		return told, false
	}
	if change == Raised {
		m.began = m.Edge()
	}
	return Told[K]{Key: key, Change: change, Edge: m.Edge(), Began: m.began}, true
}

// Rest ends a round of looks. Devices that were not looked at in it are not there: what held of one is over after
// Limits.Until, and of all others nothing is kept but for as long as another change of theirs would come too early.
func (g *Group[K]) Rest(at time.Duration) (over []Told[K]) {
	for key, m := range g.members {
		switch {
		case m.round == g.round:
		case m.Raised():
			if told, changed := g.look(key, m, at, math.Inf(-1)); changed {
				told.Gone = true
				over = append(over, told)
			}
		case !m.changed || at-m.at >= g.Limits.Apart:
			delete(g.members, key)
		}
	}
	g.round++
	return over
}

// Raised says whether the condition holds of a device.
func (g *Group[K]) Raised(key K) bool {
	m := g.members[key]
	return m != nil && m.Raised()
}

// Left is how many looks were at devices beyond those that are watched.
func (g *Group[K]) Left() uint64 { return g.left }

// Has says whether anything of a device is kept.
func (g *Group[K]) Has(key K) bool { return g.members[key] != nil }
