package switches

import (
	"sort"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// run is a stretch in which a thread was on a CPU.
type run struct {
	thread   *thread
	from, to time.Duration
	last     bool // the thread ended with it
}

const (
	// wakeTime is the longest time from a wake-up to the moment in which the thread gets a CPU.
	wakeTime = 5 * time.Millisecond
	// maxNear is the most runs that are compared for one wake-up, on each side of it.
	maxNear = 16
	// closest is the time below which the order of two events of a wake-up means nothing.
	closest = 2 * time.Microsecond
	// maxChance is the probability above which a run is assumed to be near by chance.
	maxChance = 0.5
	// maxHabit bounds by how much a thread that was taken for the waker before is preferred.
	maxHabit = 20
	// maxWakers is the number of wakers of a thread that are remembered.
	maxWakers = 16
)

// runs are in the order of their ends.
type runs []run

// waker guesses which thread ended a pause. A thread wakes another one when it is done with something, and then often
// sleeps itself. So it is one that ran then, or shortly before: the one whose run ended so near to that moment with the
// least chance. A thread that runs often is often near.
func (all runs) waker(p *pause) *thread {
	if p.to == 0 || !p.cause.byThread() {
		return nil
	}
	th := p.thread
	var best *thread
	least := maxChance
	consider := func(r *run) {
		if r.thread == th || r.thread.job != th.job || r.from >= p.to ||
			r.last && p.cause.file != sample.NoFile { // who ends wakes its parent, and those who wait for its end
			return
		}
		chance := r.thread.often * max(closest, p.to-r.to, r.to-p.to).Seconds()
		if r.to > p.to {
			chance = min(chance, r.thread.busy)
		}
		if chance > least*(1+maxHabit) {
			return
		}
		if chance /= 1 + float64(min(th.wakers[r.thread.tid], maxHabit)); chance < least {
			best, least = r.thread, chance
		}
	}
	next := sort.Search(len(all), func(i int) bool { return all[i].to >= p.to })
	for i := next - 1; i >= max(0, next-maxNear) && all[i].to >= p.to-wakeTime; i-- {
		consider(&all[i])
	}
	for i := next; i < min(len(all), next+maxNear); i++ {
		consider(&all[i])
	}
	if best != nil {
		th.learnWaker(best)
	}
	return best
}

// faded is the weight of what was before a reading.
const faded = 0.7

// learn learns how often the threads run, from the runs of a time.
func (all runs) learn(threads map[int]*thread, from, to time.Duration) {
	length := (to - from).Seconds()
	if length <= 0 {
		return
	}
	for _, th := range threads {
		th.often, th.busy = th.often*faded, th.busy*faded
	}
	for i := range all {
		r := &all[i]
		if of := (min(r.to, to) - max(r.from, from)).Seconds(); of > 0 {
			r.thread.busy += (1 - faded) * of / length
			r.thread.often += (1 - faded) / length
		}
	}
}

func (th *thread) learnWaker(by *thread) {
	if len(th.wakers) >= maxWakers && th.wakers[by.tid] == 0 {
		clear(th.wakers)
	}
	if th.wakers == nil {
		th.wakers = map[int]int{}
	}
	th.wakers[by.tid]++
}

// byThread reports whether another thread may have ended such a pause.
func (c *cause) byThread() bool {
	if c.state != sample.StateAsleep || c.syscall == sample.NoSyscall || isTimer(c.syscall) {
		return false
	}
	return c.file != sample.RegularFile && c.file != sample.Directory && c.file != sample.BlockDevice &&
		c.file != sample.CharDevice
}
