package gpu

import (
	"sort"
	"time"
)

const (
	// longestPeriod is how much time one value of the driver may stand for. Drivers give a value each 1/60 s to 1 s;
	// more time between two means that some were lost, or that the driver slept.
	maxPeriod = 2 * time.Second
	// usualPeriod stands in until two values have told the driver's own.
	defaultPeriod = time.Second / 6
)

// integral is busy time as a function of time: each value is the mean utilisation since the value before, so the
// function consists of straight pieces. It does not depend on how the values were split over fetches.
type integral struct {
	knots  []knot // rising in both
	period time.Duration
}

type knot struct{ at, busy time.Duration }

// add takes the share of time, 0 to 1, that was busy up to a moment. It gives false, and does nothing, where that
// moment is not later than the last. What lies more than longestPeriod behind it is unknown and counts as not busy, up
// to one period before the value.
func (i *integral) add(at time.Duration, share float64) bool {
	last, known := i.newest()
	if !known {
		i.knots = append(i.knots, knot{at, 0})
		return true
	}
	covers := at - last.at
	switch {
	case covers <= 0:
		return false
	case covers <= maxPeriod:
		i.period = covers
	default:
		if covers = i.period; covers == 0 {
			covers = defaultPeriod
		}
		i.knots = append(i.knots, knot{at - covers, last.busy})
	}
	i.knots = append(i.knots, knot{at, last.busy + time.Duration(share*float64(covers))})
	return true
}

// newest is the last moment that is known.
func (i *integral) newest() (knot, bool) {
	if len(i.knots) == 0 {
		return knot{}, false
	}
	return i.knots[len(i.knots)-1], true
}

// at is the busy time summed up to a moment, to the nanosecond. Before the first and after the last value it stands
// still.
func (i *integral) at(moment time.Duration) time.Duration {
	next := sort.Search(len(i.knots), func(n int) bool { return i.knots[n].at > moment })
	switch {
	case len(i.knots) == 0:
		return 0
	case next == 0:
		return i.knots[0].busy
	case next == len(i.knots):
		return i.knots[next-1].busy
	}
	a, b := i.knots[next-1], i.knots[next]
	return a.busy + time.Duration(float64(b.busy-a.busy)*(float64(moment-a.at)/float64(b.at-a.at)))
}

// forget drops what is not needed to answer for a moment or anything later.
func (i *integral) forget(moment time.Duration) {
	keep := sort.Search(len(i.knots), func(n int) bool { return i.knots[n].at > moment }) - 1
	if keep > 0 {
		i.knots = append(i.knots[:0], i.knots[keep:]...)
	}
}
