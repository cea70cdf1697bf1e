package gpu

import (
	"sort"
	"time"
)

const (
	// maxPeriod bounds the time that one sample covers. Drivers sample every 1/60 s to 1 s. A longer gap means that
	// samples were lost, or that the driver was suspended.
	maxPeriod = 2 * time.Second
	// defaultPeriod is used until two samples show the driver's period.
	defaultPeriod = time.Second / 6
)

// integral is busy time as a function of time. Each sample is the mean utilization since the sample before, so the
// function is piecewise linear. It does not depend on how the samples were split over readings.
type integral struct {
	knots  []knot // increasing in both
	period time.Duration
}

type knot struct{ at, busy time.Duration }

// add takes the busy share, 0 to 1, of the time up to a sample. It returns false and does nothing if the sample is not
// newer than the last. After a gap of more than maxPeriod, the sample covers one period, and the rest counts as idle.
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

// newest returns the last known time.
func (i *integral) newest() (knot, bool) {
	if len(i.knots) == 0 {
		return knot{}, false
	}
	return i.knots[len(i.knots)-1], true
}

// at returns the busy time up to a moment, to the nanosecond. It is constant before the first sample and after the
// last.
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

// trim drops the knots that are not needed for a moment and later.
func (i *integral) trim(moment time.Duration) {
	keep := sort.Search(len(i.knots), func(n int) bool { return i.knots[n].at > moment }) - 1
	if keep > 0 {
		i.knots = append(i.knots[:0], i.knots[keep:]...)
	}
}
