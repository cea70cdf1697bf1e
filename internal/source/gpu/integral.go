package gpu

import (
	"math"
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
	knots       []knot // increasing in both
	period      time.Duration
	provisional int // number of knots at the end that are from current rates and not from samples
}

type knot struct{ at, busy time.Duration }

// add takes the busy share, 0 to 1, of the time up to a sample. It returns false and does nothing if the sample is not
// newer than the last. After a gap of more than maxPeriod, the sample covers one period, and the rest counts as idle.
func (i *integral) add(at time.Duration, share float64) bool {
	return i.withdraw(at) && i.extend(at, share, maxPeriod)
}

// addSum is add for a share of all of the time since the last sample.
func (i *integral) addSum(at time.Duration, share float64) bool {
	return i.withdraw(at) && i.extend(at, share, math.MaxInt64)
}

// addRate is add for the current rate of a GPU whose samples are missing, for as long as rows wait for them. Samples of
// the same time replace it.
func (i *integral) addRate(at time.Duration, share float64) bool {
	before, period := len(i.knots), i.period
	added := i.extend(at, share, maxLag)
	i.provisional += len(i.knots) - before
	i.period = period
	return added
}

// withdraw drops the provisional knots in the time of a sample and later. It returns false for a sample that is not
// newer than the last one.
func (i *integral) withdraw(at time.Duration) bool {
	samples := len(i.knots) - i.provisional
	if samples > 0 && at <= i.knots[samples-1].at {
		return false
	}
	began := at - i.period
	for i.provisional > 0 && len(i.knots) > 1 && i.knots[len(i.knots)-1].at > began {
		i.knots = i.knots[:len(i.knots)-1]
		i.provisional--
	}
	i.provisional = 0
	return true
}

// extend adds a share of the time since the last knot. After a gap of more than longest, it covers one period.
func (i *integral) extend(at time.Duration, share float64, longest time.Duration) bool {
	last, known := i.newest()
	if !known {
		i.knots = append(i.knots, knot{at, 0})
		return true
	}
	covers := at - last.at
	switch {
	case covers <= 0:
		return false
	case covers <= longest:
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

// sampled returns the time of the newest sample; 0 before the first, and if all samples are older than the knots.
func (i *integral) sampled() time.Duration {
	if samples := len(i.knots) - i.provisional; samples > 0 {
		return i.knots[samples-1].at
	}
	return 0
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
		i.provisional = min(i.provisional, len(i.knots))
	}
}
