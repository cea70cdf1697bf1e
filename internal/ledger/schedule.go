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
	timeline threads // nil without evidence
	wanted   int     // thread that leads by the target; 0 if unknown
	target   int     // the same, or the one before while the timeline knows nothing of it
	leader   int     // target, or the thread that created it once it has ended

	drives bool // a GPU
	begun  bool
	done   time.Duration // end of the newest block that cannot change any more
	sums   sums          // since begun, at done
	given  sums          // the same at the end of the last cell
	waits  gpuWaits
	known  bool          // the waits were learned before the first block was divided
	period time.Duration // of the driver's samples
	clock  []checkpoint  // in the order of time
	cpu    float64       // s, of the job at the end of the last cell; of moments
	spun   float64       // s, of its threads that spin; the same
	names  *names        // nil for a copy that looks ahead
	memory *blocks       // that accounts share, one after another; nil for none

	steps *chain.Handovers // of the leader; nil while it is not known
	led   []led            // those that led before it and may have steps, in the order of time

	horizon history.Point // what is divided in cells now ends here; zero if there is one cell
	last    *lastBlock    // the newest one up to the horizon
}

// stretch is what a block is of.
type stretch struct {
	from, to time.Duration
	leader   int
}

// blocks is memory for the blocks of one account at a time.
type blocks struct{ kept, passing block }

// lastBlock is a block with the stretch that it is of.
type lastBlock struct {
	stretch
	*block
	before, learned gpuWaits // the waits that it was divided by, and with what it showed

	upTo sums   // since begun, at the end of the newest cell in it
	next cursor // of the next cell
}

// sums are seconds since an account began to use the scheduler's reports.
type sums struct {
	busy, storage, cpu float64
	ready              float64 // part of cpu: without a CPU
	fed                float64
	dark               float64 // without evidence
	other              [chain.ReasonKinds]float64
	clocks             chain.Times
}

// led is what a thread had to do with others that bring its data until another thread led.
type led struct {
	steps *chain.Handovers
	until time.Duration
}

// checkpoint is the state of the leader's clocks when the scheduler's reports were read.
type checkpoint struct {
	at time.Duration
	chain.Times
}

const (
	// maxCheckpoints is enough for keepSchedule with windows that begin and end 200 times a second. There are at least
	// fewCheckpoints, so that few are moved.
	maxCheckpoints = 1024
	fewCheckpoints = 128
	// maxLed is enough for a script that runs some programs with workers after a training. Its last epoch ends with it.
	maxLed = 4
)

// lead sets the thread whose time is divided.
func (s *schedule) lead(tid int) {
	s.wanted = tid
	s.choose()
}

// choose follows the wanted thread. One that is in no report yet does not replace one that is: a short-lived child of a
// plain user's job can have ended before its events were lent, and its parent waited for it.
func (s *schedule) choose() {
	if s.wanted == s.target || s.timeline != nil && s.timeline.Knows(s.leader) && !s.timeline.Knows(s.wanted) {
		return
	}
	s.target = s.wanted
	s.follow(s.target)
}

func (s *schedule) follow(tid int) {
	s.leader, s.begun, s.clock = tid, false, nil
	s.checkpoint()
}

// checkpoint notes the leader's clocks.
func (s *schedule) checkpoint() {
	if s.leader == 0 || s.timeline == nil || !s.timeline.Knows(s.leader) {
		return
	}
	at := s.timeline.Until()
	s.hand(s.timeline.Handovers(s.leader), at)
	if n := len(s.clock); n > 0 && s.clock[n-1].at >= at {
		return
	}
	n := len(s.clock) / 2
	if n >= fewCheckpoints/2 && (len(s.clock) >= maxCheckpoints || s.clock[n].at < at-keepSchedule()) {
		s.clock = slices.Delete(s.clock, 0, n) // copies of s do not outlive the call that makes them
	}
	s.clock = append(s.clock, checkpoint{at, s.timeline.TimesAt(s.leader)})
}

// hand takes the handovers of the leader from a moment on. A report may still need those of the thread before, which
// may have ended.
func (s *schedule) hand(steps *chain.Handovers, at time.Duration) {
	if steps == s.steps {
		return
	}
	before := slices.Clone(s.led) // copies of s have the same
	before = slices.DeleteFunc(before, func(l led) bool { return l.steps == steps })
	if all, _ := s.steps.Between(0, at); len(all) >= minSteps {
		before = append(before, led{s.steps, at})
	}
	s.steps, s.led = steps, before[max(0, len(before)-maxLed):]
}

// handovers returns those of the thread that led from one moment to another, and whether they are all. Of several it is
// the first with enough for steps: the last epoch of a training lasts until a script has ended that runs other programs
// after it.
func (s *schedule) handovers(from, to time.Duration) (known []chain.Handover, complete bool) {
	if s.timeline == nil {
		return nil, false
	}
	for _, l := range s.led {
		if known, since := l.steps.Between(from, min(to, l.until)); len(known) >= minSteps {
			return known, max(since, s.timeline.Gap()) <= from
		}
	}
	known, since := s.steps.Between(from, to)
	return known, max(since, s.timeline.Gap()) <= from
}

// clocksAt interpolates the leader's clocks.
func (s *schedule) clocksAt(at time.Duration) chain.Times {
	i, found := slices.BinarySearchFunc(s.clock, at, func(c checkpoint, at time.Duration) int {
		return cmp.Compare(c.at, at)
	})
	switch {
	case len(s.clock) == 0:
		return chain.Times{}
	case found:
		return s.clock[i].Times
	case i == 0: // unknown, so nothing is saved
		first := s.clock[0]
		early := first.at - at
		return first.With(chain.Times{Memory: early, Pending: early, Workers: early, GPU: early, Network: early}, minus)
	case i == len(s.clock):
		return s.clock[i-1].Times
	}
	a, b := &s.clock[i-1], &s.clock[i]
	share := float64(at-a.at) / float64(b.at-a.at)
	return a.With(b.Times, func(x, y time.Duration) time.Duration { return x + time.Duration(float64(y-x)*share) })
}

func minus(x, y time.Duration) time.Duration { return x - y }

// scheduled divides the time from the end of the last cell to p by the scheduler's reports. dark is how many seconds
// these leave out.
func (a *account) scheduled(h *history.History, p history.Point) (known parts, dark float64) {
	s, other := &a.schedule, &a.moments
	if !a.covers(s, p) {
		s, other = other, s
	}
	other.begun, other.last = false, nil
	if !a.covers(s, p) {
		s.begun = false
		return parts{}, (p.At - a.end.At).Seconds()
	}
	if !s.begun {
		s.begun, s.done = true, a.end.At
		s.sums = sums{clocks: s.clocksAt(a.end.At)}
		s.given = s.sums
	}
	a.totals.Scheduled = a.counted(h, p, s)
	now := s.until(h, a.target.GPU, p)
	was := s.given
	s.given = now.atLeast(&was)
	length := p.At - a.end.At
	of := s.given.since(&was)
	total := *a.totals.Scheduled
	total.Time += length - min(length, seconds(of.dark))
	for i := range of.other {
		total.Other[i] += seconds(of.other[i])
	}
	// What a clock saves may be less than nothing: it goes faster than the time when a thread that was ahead waits for one
	// that was not, as one that read waits at the end for one that worked meanwhile.
	// Before the first clocks of this leading thread, it is assumed to have waited for all of its storage in turn.
	inTurn := of.storage * max(0, min(p.At, s.clock[0].at)-a.end.At).Seconds() / length.Seconds()
	total.GainLow += length - of.clocks.Pending + seconds(inTurn)
	total.GainWorkers += length - of.clocks.Workers
	total.GainGPU += length - of.clocks.GPU
	total.GainNetwork += length - of.clocks.Network + seconds(inTurn)
	total.Work += of.clocks.Work
	total.Fed += seconds(of.fed)
	total.Ready += seconds(of.ready)
	a.totals.Scheduled = &total
	gain := (length - of.clocks.Memory).Seconds() + inTurn
	return parts{busy: of.busy, storage: of.storage, cpu: of.cpu, gain: gain}, min(of.dark, length.Seconds())
}

// covers reports whether evidence covers the time from the end of the last cell to p.
func (a *account) covers(s *schedule, p history.Point) bool {
	if s.timeline == nil || a.target.Job == "" {
		return false
	}
	if heir := s.timeline.Heir(s.leader, a.end.At); heir != s.leader {
		s.follow(heir)
	}
	return len(s.clock) > 0 && s.timeline.Covers(s.leader, a.end.At, p.At)
}

// counted returns the totals so far, with what only moments have to be counted for.
func (a *account) counted(h *history.History, p history.Point, s *schedule) *history.Scheduled {
	total := history.Scheduled{}
	if a.totals.Scheduled != nil {
		total = *a.totals.Scheduled
	}
	m, sampled := s.timeline.(*chain.Moments)
	if !sampled {
		return &total
	}
	total.Sampled += p.At - a.end.At
	total.Moments += m.Seen(s.leader, a.end.At, p.At)
	if now, known := h.Level(history.Key{Series: history.JobCPUTime, ID: a.target.Job}, p); known {
		spun := m.Spun(s.leader)
		if s.cpu > 0 {
			total.Work += seconds(max(0, now-s.cpu-max(0, spun-s.spun)))
		}
		s.cpu, s.spun = now, spun
	}
	return &total
}

// until returns the sums at a moment. It moves done forward.
func (s *schedule) until(h *history.History, gpu string, p history.Point) sums {
	s.drives = gpu != ""
	settled := min(s.timeline.Settled(s.leader, patience), s.timeline.Until())
	if gpu == "" {
		if end := min(settled, p.At); end > s.done {
			s.resolve(s.block(s.done, end, nil, false), s.done, end)
		}
		return s.beyond(p.At, nil)
	}
	if l := s.last; l != nil && l.from == s.done && l.leader == s.leader && s.done < p.At && p.At < l.to {
		return s.within(l.stretch, p.At, nil) // nothing has changed since the cell before: see cells
	}
	key := history.Key{Series: history.GPUBusyTime, ID: gpu}
	s.period = h.SamplePeriod(gpu)
	newest, _ := h.Last(history.GPUBusyTime)
	end := min(settled, newest)
	if end > s.done+s.least() {
		steps := h.Steps(key, history.Point{At: s.done}, history.Point{At: end})
		for len(steps) > 0 {
			n := s.blockOf(steps)
			if n == 0 || !s.foresee(steps) {
				break
			}
			from, to := steps[0].Start, steps[n-1].End
			if to > p.At {
				if p.At <= s.done {
					break
				}
				return s.within(stretch{from, to, s.leader}, p.At, steps[:n])
			}
			s.resolve(s.again(stretch{from, to, s.leader}, steps[:n]), from, to)
			steps = steps[n:]
		}
	}
	to := p
	if s.horizon.At > p.At && p.At > s.done {
		to = s.horizon
		if l := s.last; l != nil && l.from == s.done && l.to == to.At && l.leader == s.leader {
			return s.within(l.stretch, p.At, nil)
		}
	}
	steps := h.Steps(key, history.Point{At: s.done}, to)
	if len(steps) == 0 {
		steps = []history.Step{{Start: s.done, End: to.At}}
	}
	if to.At > p.At {
		return s.within(stretch{s.done, to.At, s.leader}, p.At, steps)
	}
	return s.beyond(p.At, steps)
}

// cells begins the division of a stretch in cells up to a moment. Until then, neither the timeline nor the readings of
// GPUs change, so that a block that several cells lie in is made once.
func (s *schedule) cells(horizon history.Point) { s.horizon, s.last = horizon, nil }

// foresee learns how the thread waits for its GPU before the first blocks in which that one works are divided. It is
// false if too little is known yet.
func (s *schedule) foresee(steps []history.Step) bool {
	if s.known || !slices.ContainsFunc(steps[:s.blockOf(steps)], func(one history.Step) bool { return one.Grown > 0 }) {
		return true
	}
	if steps[len(steps)-1].End-steps[0].Start < max(minKnown, s.least()) {
		if n := s.blockOf(steps); s.names != nil { // the clocks need something now
			learned := s.waits
			s.block(steps[0].Start, steps[n-1].End, steps[:n], false)
			s.timeline.Lead(s.leader, s.drives, s.waits.spinning.share(), s.waits.sleeping.share())
			s.waits = learned
		}
		return false
	}
	for n := s.blockOf(steps); n > 0; n = s.blockOf(steps) {
		s.block(steps[0].Start, steps[n-1].End, steps[:n], false)
		steps = steps[n:]
	}
	s.known = true
	return true
}

// least is the length of the shortest block.
func (s *schedule) least() time.Duration {
	if _, sampled := s.timeline.(*chain.Moments); sampled {
		return minSampled
	}
	return minBlock
}

// blockOf returns how many of the steps are a block that is long enough; 0 if all are less.
func (s *schedule) blockOf(steps []history.Step) int {
	for i, step := range steps {
		if step.End-steps[0].Start >= s.least() {
			return i + 1
		}
	}
	return 0
}

// resolve adds a block that cannot change any more.
func (s *schedule) resolve(b *block, from, to time.Duration) {
	s.sums.add(b, &cursor{at: from}, to)
	s.done = to
	if s.names == nil {
		return // a copy that looks ahead leaves no trace: a replay does not look ahead
	}
	s.names.learn(b, s.leader, from, to)
	s.timeline.Lead(s.leader, s.drives, s.waits.spinning.share(), s.waits.sleeping.share())
}

// beyond returns the sums at a moment after done. steps are of the GPU since; nil without one.
func (s *schedule) beyond(at time.Duration, steps []history.Step) sums {
	if at > s.done {
		return s.within(stretch{s.done, at, s.leader}, at, steps)
	}
	now := s.sums
	now.clocks = s.clocksAt(at)
	return now
}

// within returns the sums at a moment of the block that follows done, and learns nothing from the block.
func (s *schedule) within(of stretch, at time.Duration, steps []history.Step) sums {
	learned := s.waits
	if l := s.last; l == nil || l.stretch != of {
		s.last = &lastBlock{stretch: of, block: s.block(of.from, of.to, steps, true), before: learned}
		s.last.learned, s.last.upTo, s.last.next.at = s.waits, s.sums, of.from
	}
	s.last.upTo.add(s.last.block, &s.last.next, at)
	now := s.last.upTo
	s.waits = learned
	if s.horizon.At <= at {
		s.last = nil
	}
	now.clocks = s.clocksAt(at)
	return now
}

// again returns block, of the cells before if it is the same.
func (s *schedule) again(of stretch, steps []history.Step) *block {
	if l := s.last; l != nil && l.stretch == of && l.before == s.waits {
		s.waits = l.learned
		return l.block
	}
	return s.block(of.from, of.to, steps, false)
}

// block divides a stretch of time. steps say how long the GPU was busy in its parts; nil without a GPU. The block is
// valid until the next one, or until the next one that is kept.
func (s *schedule) block(from, to time.Duration, steps []history.Step, kept bool) *block {
	b := &block{}
	switch {
	case s.memory != nil && kept:
		b = &s.memory.kept
	case s.memory != nil:
		b = &s.memory.passing
	}
	*b = block{
		timeline: s.timeline, pieces: s.timeline.Walk(s.leader, from, to, b.pieces[:0]), parts: b.parts[:0],
	}
	if steps == nil {
		for c := range b.idle {
			b.idle[c] = 1
		}
		return b
	}
	if m, sampled := s.timeline.(*chain.Moments); sampled {
		b.grain = (to - from).Seconds() / float64(max(1, m.Seen(s.leader, from, to)))
	}
	b.launches = s.timeline.Sleeps(s.leader, from, to)
	b.divide(steps, s.period, &s.waits)
	return b
}

func (s *sums) since(was *sums) sums {
	d := sums{
		fed: s.fed - was.fed, dark: s.dark - was.dark, busy: s.busy - was.busy,
		storage: s.storage - was.storage, cpu: s.cpu - was.cpu, ready: s.ready - was.ready,
		clocks: s.clocks.With(was.clocks, minus),
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
	m.fed, m.ready = max(s.fed, was.fed), max(s.ready, was.ready)
	m.busy, m.storage, m.cpu = max(s.busy, was.busy), max(s.storage, was.storage), max(s.cpu, was.cpu)
	for i := range m.other {
		m.other[i] = max(s.other[i], was.other[i])
	}
	m.clocks.Work = max(s.clocks.Work, was.clocks.Work)
	return m
}
