package ledger

import (
	"cmp"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/history"
	"github.com/stallspan/stallspan/internal/ledger/chain"
)

// schedule divides the time of one target by what the scheduler reported of the job's threads. Copies are independent.
type schedule struct {
	timeline *chain.Timeline // nil without such a report
	leader   int             // thread; 0 if unknown

	begun bool
	done  time.Duration // end of the newest block that cannot change any more
	sums  sums          // since begun, at done
	given sums          // the same at the end of the last cell
	waits gpuWaits
	clock []checkpoint     // in the order of time
	ahead [4]time.Duration // by which each clock was faster than the time; see saved
	names *names           // nil for a copy that looks ahead
}

// sums are seconds since an account began to use the scheduler's reports.
type sums struct {
	busy, storage, cpu float64
	fed                float64
	dark               float64 // without evidence
	other              [chain.ReasonKinds]float64
	clocks             chain.Times
}

// checkpoint is the state of the leader's clocks when the scheduler's reports were read.
type checkpoint struct {
	at time.Duration
	chain.Times
}

const (
	// minBlock is the shortest stretch in which the GPU's busy time is compared with what the threads did. The driver's
	// samples are up to 1/6 s long, and neither their ends nor the scheduler's events are where the steps end. In a
	// shorter stretch such differences would be taken for idle time without a cause.
	minBlock = time.Second
	// patience is how long to wait for the end of a sleep, which shows what the thread slept for.
	patience = 2 * time.Second
	// maxCheckpoints is enough for keepSchedule with windows that begin and end 200 times a second.
	maxCheckpoints = 1024
)

// lead sets the thread whose time is divided.
func (s *schedule) lead(tid int) {
	if s.leader != tid {
		s.leader, s.begun, s.clock = tid, false, nil
		s.checkpoint()
	}
}

// checkpoint notes the leader's clocks.
func (s *schedule) checkpoint() {
	if s.leader == 0 || s.timeline == nil || !s.timeline.Knows(s.leader) {
		return
	}
	at := s.timeline.Until()
	if n := len(s.clock); n > 0 && s.clock[n-1].at >= at {
		return
	}
	if n := len(s.clock) - maxCheckpoints/2; n > 0 && (len(s.clock) >= maxCheckpoints || s.clock[n].at < at-keepSchedule) {
		s.clock = slices.Clone(s.clock[n:])
	}
	s.clock = append(s.clock, checkpoint{at, s.timeline.TimesAt(s.leader)})
}

// clocksAt interpolates the leader's clocks.
func (s *schedule) clocksAt(at time.Duration) chain.Times {
	i, found := slices.BinarySearchFunc(s.clock, at, func(c checkpoint, at time.Duration) int {
		return cmp.Compare(c.at, at)
	})
	switch {
	case len(s.clock) == 0:
		return chain.Times{}
	case found || i == 0:
		return s.clock[min(i, len(s.clock)-1)].Times
	case i == len(s.clock):
		return s.clock[i-1].Times
	}
	a, b := &s.clock[i-1], &s.clock[i]
	share := float64(at-a.at) / float64(b.at-a.at)
	mix := func(x, y time.Duration) time.Duration { return x + time.Duration(float64(y-x)*share) }
	return chain.Times{
		Memory: mix(a.Memory, b.Memory), Pending: mix(a.Pending, b.Pending), Workers: mix(a.Workers, b.Workers),
		GPU: mix(a.GPU, b.GPU), Work: mix(a.Work, b.Work),
	}
}

// scheduled divides the time from the end of the last cell to p by the scheduler's reports. dark is how many seconds
// these leave out.
func (a *account) scheduled(h *history.History, p history.Point) (known parts, dark float64) {
	s := &a.schedule
	if s.timeline == nil || len(s.clock) == 0 || a.target.Job == "" || !s.timeline.Covers(s.leader, a.at, p.At) {
		s.begun = false
		return parts{}, (p.At - a.at).Seconds()
	}
	if !s.begun {
		s.begun, s.done, s.ahead = true, a.at, [4]time.Duration{}
		s.sums = sums{clocks: s.clocksAt(a.at)}
		s.given = s.sums
	}
	now := s.until(h, a.target.GPU, p)
	was := s.given
	s.given = now.atLeast(&was)
	if a.totals.Scheduled == nil {
		a.totals.Scheduled = &history.Scheduled{}
	}
	length := p.At - a.at
	of := s.given.since(&was)
	total := *a.totals.Scheduled
	total.Time += length - min(length, seconds(of.dark))
	for i := range of.other {
		total.Other[i] += seconds(of.other[i])
	}
	total.GainLow += saved(length, of.clocks.Pending, &s.ahead[0])
	total.GainWorkers += saved(length, of.clocks.Workers, &s.ahead[1])
	total.GainGPU += saved(length, of.clocks.GPU, &s.ahead[2])
	total.Work += of.clocks.Work
	total.Fed += seconds(of.fed)
	a.totals.Scheduled = &total
	gain := saved(length, of.clocks.Memory, &s.ahead[3]).Seconds()
	return parts{busy: of.busy, storage: of.storage, cpu: of.cpu, gain: gain}, min(of.dark, length.Seconds())
}

// saved returns what a clock saved in a stretch. A clock may go faster than the time for a moment, when a thread that
// was ahead waits for one that was not. ahead is then subtracted from what the clock saves later.
func saved(length, clock time.Duration, ahead *time.Duration) time.Duration {
	saved := length - clock - *ahead
	*ahead = max(0, -saved)
	return max(0, saved)
}

// until returns the sums at a moment. It moves done forward.
func (s *schedule) until(h *history.History, gpu string, p history.Point) sums {
	settled := min(s.timeline.Settled(s.leader, patience), s.timeline.Until())
	if gpu == "" {
		if end := min(settled, p.At); end > s.done {
			s.resolve(s.block(s.done, end, -1), s.done, end)
		}
		return s.beyond(p.At, -1)
	}
	key := history.Key{Series: history.GPUBusyTime, ID: gpu}
	end := min(settled, s.newestGPU(h))
	if end > s.done+minBlock {
		steps := h.Steps(key, history.Point{At: s.done}, history.Point{At: end})
		for len(steps) > 0 {
			from, to, busy, rest := takeBlock(steps)
			if to-from < minBlock {
				break
			}
			if to > p.At {
				if p.At <= s.done {
					break
				}
				return s.within(from, to, p.At, busy)
			}
			s.resolve(s.block(from, to, busy), from, to)
			steps = rest
		}
	}
	before, known := h.Level(key, history.Point{At: s.done})
	now, still := h.Level(key, p)
	if !known || !still {
		before, now = 0, 0
	}
	return s.beyond(p.At, now-before)
}

func (s *schedule) newestGPU(h *history.History) time.Duration {
	last, _ := h.Last(history.GPUBusyTime)
	return last
}

// takeBlock joins steps to a block of at least minBlock.
func takeBlock(steps []history.Step) (from, to time.Duration, busy float64, rest []history.Step) {
	from = steps[0].Start
	for i, step := range steps {
		busy, to = busy+step.Grown, step.End
		if to-from >= minBlock {
			return from, to, busy, steps[i+1:]
		}
	}
	return from, to, busy, nil
}

// resolve adds a block that cannot change any more.
func (s *schedule) resolve(b *block, from, to time.Duration) {
	s.sums.add(b, from, to)
	s.done = to
	if s.names == nil {
		return // a copy that looks ahead leaves no trace: a replay does not look ahead
	}
	s.names.learn(b)
	s.timeline.Lead(s.leader, s.waits.spinning, s.waits.sleeping)
}

// beyond returns the sums at a moment after done. The GPU was busy for so many seconds since; negative without a GPU.
func (s *schedule) beyond(at time.Duration, busy float64) sums {
	if at > s.done {
		return s.within(s.done, at, at, busy)
	}
	now := s.sums
	now.clocks = s.clocksAt(at)
	return now
}

// within returns the sums at a moment of the block that follows done, and learns nothing from the block.
func (s *schedule) within(from, to, at time.Duration, busy float64) sums {
	learned, now := s.waits, s.sums
	now.add(s.block(from, to, busy), from, at)
	s.waits = learned
	now.clocks = s.clocksAt(at)
	return now
}

// block divides a stretch in which the GPU was busy for so many seconds; negative without a GPU.
func (s *schedule) block(from, to time.Duration, busy float64) *block {
	b := &block{timeline: s.timeline, pieces: s.timeline.Walk(s.leader, from, to, nil)}
	if busy < 0 {
		b.idle = [classes]float64{1, 1, 1, 1, 1}
		return b
	}
	b.divide((to - from).Seconds(), busy, &s.waits)
	return b
}

func (s *sums) since(was *sums) sums {
	d := sums{
		fed: s.fed - was.fed, dark: s.dark - was.dark, busy: s.busy - was.busy,
		storage: s.storage - was.storage, cpu: s.cpu - was.cpu,
		clocks: chain.Times{
			Memory: s.clocks.Memory - was.clocks.Memory, Pending: s.clocks.Pending - was.clocks.Pending,
			Workers: s.clocks.Workers - was.clocks.Workers, GPU: s.clocks.GPU - was.clocks.GPU,
			Work: s.clocks.Work - was.clocks.Work,
		},
	}
	for i := range d.other {
		d.other[i] = s.other[i] - was.other[i]
	}
	return d
}

// atLeast returns sums that are nowhere smaller than before: what was given is not taken back.
func (s *sums) atLeast(was *sums) sums {
	m := *s
	m.dark = max(s.dark, was.dark)
	m.fed = max(s.fed, was.fed)
	m.busy, m.storage, m.cpu = max(s.busy, was.busy), max(s.storage, was.storage), max(s.cpu, was.cpu)
	for i := range m.other {
		m.other[i] = max(s.other[i], was.other[i])
	}
	m.clocks.Work = max(s.clocks.Work, was.clocks.Work)
	return m
}
