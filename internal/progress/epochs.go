package progress

import (
	"math"
	"slices"
	"time"
)

// latePart is the minimum fraction at which a line about the previous epoch counts as a late redraw of its bar. A lower
// fraction belongs to a new run that begins again at a smaller number.
const latePart = 0.5

// place is where in an epoch a line was printed: at step 3 of 10. Steps may count on from epoch to epoch.
type place struct {
	known  bool
	at, of float64 // of is 0 if it is not printed
}

// comparable reports whether two lines count in the same unit.
func (p place) comparable(to place) bool {
	return p.known && to.known && (p.of > 0) == (to.of > 0)
}

// part is the fraction of the epoch that is done, or the number of steps.
func (p place) part() float64 {
	if p.of == 0 {
		return p.at
	}
	return min(p.at/p.of, 1)
}

// span is a time from the first to the last line of something.
type span struct {
	known    bool
	from, to time.Duration
}

func (s *span) add(at time.Duration) {
	if !s.known {
		s.from = at
	}
	s.known, s.to = true, at
}

// bar is a bar without a number: there may be several before the first epoch and within one.
type bar struct {
	known         bool
	first, latest time.Duration // when the first one and the latest one began
	place         place         // of the latest
}

func (b *bar) add(o *observation) {
	from := max(0, o.at-seconds(o.elapsed))
	if !b.known {
		b.first = from
	}
	if !b.known || o.place.of != b.place.of || o.place.at < b.place.at {
		b.latest = from
	}
	b.known, b.place = true, o.place
}

// epoch is what is known of an epoch. Its end is known only when the next one begins.
type epoch struct {
	number, total int
	epochs        int // that it stands for
	from          time.Duration
	loose         bool // began with the program
	firm          bool
	evaluation    bool // its first line is of an evaluation
	byEnd         bool // its first line was printed at its end
	shown, ended  bool // its events were emitted

	firstAt         time.Duration
	firstTemplate   uint64
	lines           int
	first, furthest place
	started, latest progressLine
	numbered        bool // lines of its progress have its number
	done            span // its last step was printed, and what follows without words of evaluation
	end             span // lines that were printed once, behind its progress
	endTemplate     uint64
	endExact        uint64
	template        uint64        // of its progress
	pause           span          // evaluation and checkpoints behind that
	lags            bool          // its first line came within the evaluation
	resumed         bool          // lines of training came behind the pause
	unnumbered      time.Duration // time of the latest line with results and without a number
}

type progressLine struct {
	at       time.Duration
	place    place
	stepTime float64
}

// epochs follows a run from epoch to epoch. Its state has a fixed size.
//
// Several ranks of a training may print the same lines, each a little later than the first. The first line with a new
// number begins an epoch, and a late line of the epoch before is left out: see late.
type epochs struct {
	emit func(Event)

	open      bool
	cur       epoch
	stride    int    // between the numbers of two epochs
	bar       bar    // of lines without a number since the epoch that ended last
	ending    uint64 // template of the line that ended the epoch before: it ends this one at once
	trained   bool   // results of a training were printed before the first number
	closing   uint64 // template of a line without results that ends an epoch
	beginning uint64 // template of a line with results that begins an epoch
	fixed     uint64 // template of a line whose steps are those of a whole epoch

	ended     bool
	last      int // the latest epoch that ended
	lastTo    time.Duration
	lastLines int
	lastFirst place
	origin    int // number of the training's first epoch

	amounts amounts
}

// Tolerances of printed times.
const (
	slack      = 150 * time.Millisecond // a line is read a little after it was printed
	wholeSlack = time.Second            // of a printed duration of whole seconds
	soon       = 250 * time.Millisecond // in which a bar is drawn that shows 00:00
	duplicates = 0.1                    // of an epoch, in which ranks print the same line
)

func seconds(s float64) time.Duration {
	return time.Duration(min(s, 1e9) * float64(time.Second))
}

// line handles a line with a number.
func (e *epochs) line(o *observation) {
	number := int(o.number)
	c := &e.cur
	if e.fixed != 0 && o.template == e.fixed {
		o.place = place{}
	}
	switch {
	case e.open && c.total > 0 && o.total == 0 && number > c.total && c.total > 1:
		// Another counter.
	case o.amount || e.amounts.used:
		e.reached(o)
	case e.open && number == c.number+1 && !o.place.known && !o.begins && c.numbered && c.done.known && !c.end.known:
		e.endLine(o) // the end is counted from 1, and the progress from 0
	case e.open && e.cur.number == number:
		e.update(o)
	case e.late(number, o.place, !o.begins || o.repeats):
	case e.open && o.place.known && number == c.number-1 && !c.byEnd && !c.numbered:
		e.progress(o) // the begin is counted from 1, and the progress from 0
	default:
		e.next(o)
	}
}

// next begins an epoch, and ends the one before.
func (e *epochs) next(o *observation) {
	number := int(o.number)
	c := &e.cur
	switch {
	case e.open && c.evaluation && c.lines == 1 && !o.evaluates && !e.ended:
		e.forget() // evaluated before the training
	case e.open && !c.firm && (c.numbered && !o.place.known || number != c.number+1 && !e.ended):
		e.forget() // a number that did not rise: a counter that stays, or a setting
	case e.open && c.lines == 1 && c.numbered && o.place.known && o.place.of == c.first.of && number > c.number &&
		o.place.at-c.first.at == float64(number-c.number): // the bar is one over the epochs
		c.byEnd, c.numbered = true, false
		c.end.add(c.latest.at)
		c.done, c.latest, c.endTemplate, o.place.known = span{}, progressLine{}, o.template, false
		o.place = place{}
	}
	if e.open && c.byEnd && !c.ended && c.end.known && c.end.from-c.firstAt > 3*(o.at-c.end.to)/2 {
		// The first line of the epoch is far before the last one, and that near to the next epoch: it begins it.
		c.byEnd, c.from, c.loose, e.beginning = false, c.firstAt, false, c.firstTemplate
	}
	if e.open && c.numbered && c.first.of == 0 && c.first == c.furthest && e.stepsOfEpoch(o) {
		c.numbered, c.done, c.started, c.latest, e.fixed = false, span{}, progressLine{}, progressLine{}, o.template
		if c.byEnd = o.metric; o.metric {
			c.end, c.endTemplate = span{}, o.template
			c.end.add(c.firstAt)
		} else {
			c.from, c.loose = c.firstAt, false
		}
		o.place = place{}
	}
	if e.open && c.lines == 1 && !c.byEnd && !c.ended && c.unnumbered > 0 && !c.started.place.known &&
		c.unnumbered-c.firstAt < (o.at-c.unnumbered)/10 {
		// The results come with the number, as rows of a table: it is the end.
		e.drop()
		c.byEnd, c.from, c.loose, e.closing = true, e.lastTo, !e.ended, o.template
		c.end.add(c.firstAt)
	}
	follows := e.open || e.ended
	if !follows && e.trained && !o.place.known {
		e.closing = o.template // results came before the first number
	}
	switch {
	case e.closing != 0 && o.template == e.closing:
		o.begins, o.ends = false, true
	case e.beginning != 0 && o.template == e.beginning, !o.place.known && !o.results():
		o.begins = true
	}
	stride := 1
	if last := e.lastNumber(); follows && number > last+1 {
		stride = number - last
	}
	n := epoch{number: number, total: o.total, epochs: stride, firm: o.firm,
		byEnd: !o.begins && o.results(), lines: 1, firstAt: o.at, firstTemplate: o.template,
		first: o.place, furthest: o.place, evaluation: o.evaluates}
	var printed bool
	n.from, printed = e.finish(o, stride)
	n.loose = !follows && !printed
	if !follows || number <= e.last {
		e.origin = number
	}
	e.open, e.stride = true, stride
	*c = n
	if o.place.known {
		e.progress(o)
		c.numbered = true
	} else if n.byEnd {
		e.endLine(o)
	}
	if !c.byEnd && c.firm {
		e.show()
	}
	e.bar = bar{}
}

// stepsOfEpoch reports whether the steps of the open epoch's only step are those of a whole epoch: 40 for each, or 40
// for the first and 80 for the second.
func (e *epochs) stepsOfEpoch(o *observation) bool {
	if !o.place.known || o.place.of > 0 || int(o.number) != e.cur.number+1 || o.template != e.cur.firstTemplate {
		return false
	}
	each := o.place.at - e.cur.first.at
	done := e.cur.first.at / each
	if each == 0 {
		return o.place.at > 1 && (!o.metric || !e.cur.end.known)
	}
	return e.cur.lines == 1 && o.metric && each > 1 && (done == float64(e.cur.number) || done == float64(e.cur.number+1))
}

func (e *epochs) lastNumber() int {
	if e.open {
		return e.cur.number
	}
	return e.last
}

// finish ends the open epoch where the next one shows that it ended, and returns where that one begins. printed is set
// if its first line says so.
func (e *epochs) finish(o *observation, stride int) (from time.Duration, printed bool) {
	c := &e.cur
	if !e.open {
		return e.beginOf(o, e.lastTo, !e.ended)
	}
	to, sure := c.endOf()
	floor := max(c.latest.at, c.from)
	if sure {
		floor = to
	}
	paused := c.pause.known
	if paused && c.byEnd && !o.begins && !o.place.known && c.pause.from-floor > o.at-c.pause.to {
		paused = false // the evaluation is nearer to the next end: it is of that epoch
	}
	if paused {
		floor = c.pause.to
	}
	from, printed = e.beginOf(o, floor, paused)
	if !sure {
		limit := o.at
		switch {
		case paused:
			limit = c.pause.from
		case printed:
			limit = from
		}
		switch to = c.endBefore(limit); {
		case to < limit, paused, printed:
		case c.latest.at > 0:
			to = c.latest.at + (o.at-c.latest.at)/2
		default:
			to = from
		}
	}
	e.over(to, stride, false)
	return max(from, to), printed
}

// beginOf is where the epoch of its first line began. It is not before floor: the end of the epoch before, its last
// line, or the last line of an evaluation. apart is set if the time since floor may belong to something else.
func (e *epochs) beginOf(o *observation, floor time.Duration, apart bool) (from time.Duration, printed bool) {
	switch {
	case o.begins:
		return o.at, true
	case !o.place.known:
		return e.beginOfEnded(o, floor, apart)
	case o.elapsed == 0 && o.place.at == 0:
		return o.at, true // a bar is drawn for the first time
	}
	if from := o.at - seconds(o.stepTime); o.stepTime > 0 && o.place.at <= 1 && o.elapsed < 0 && from >= floor-slack {
		return max(from, floor), true
	}
	if o.elapsed >= 0 && o.elapsed < 1 {
		ago := soon
		if o.place.part() > 0.1 {
			ago = min(max(soon, seconds(o.place.at*o.stepTime)), time.Second)
		}
		return max(floor, o.at-ago), true
	}
	if hi := o.at - seconds(o.elapsed); o.elapsed >= 0 && hi >= floor-slack {
		return max(floor, hi-time.Second/2), true
	}
	if from := o.at - seconds(o.place.at*o.stepTime); apart && o.stepTime > 0 && from >= floor-slack {
		return max(from, floor), true
	}
	return floor, false
}

// beginOfEnded is beginOf for a line that was printed at the end of its epoch.
func (e *epochs) beginOfEnded(o *observation, floor time.Duration, apart bool) (from time.Duration, printed bool) {
	least := 0.5 * (o.at - floor).Seconds()
	longest := 0.0
	for _, d := range o.durations {
		if d > longest && d >= least && o.at-seconds(d) >= floor-wholeSlack {
			longest = d
		}
	}
	near := slack
	if longest == math.Floor(longest) {
		near = wholeSlack
	}
	from = o.at - seconds(longest)
	switch {
	case apart && e.bar.known && e.bar.first > floor && (longest == 0 || (e.bar.first-from).Abs() <= near):
		return e.bar.first, true
	case longest > 0 && (from-floor).Abs() > near:
		return max(from, floor), true
	}
	return floor, false
}

// endOf is where an epoch ended, if its own lines say so.
func (c *epoch) endOf() (to time.Duration, sure bool) {
	switch {
	case c.end.known && float64(c.end.to-c.end.from) <= duplicates*float64(c.end.to-c.from):
		return c.end.from, true
	case c.end.known && c.byEnd: // the line is printed again and again: it shows progress
		c.latest.at = c.end.to
		return 0, false
	case c.done.known && c.done.to-c.done.from > (c.done.from-c.from)/2:
		c.pause = c.done // what follows is of something else
		return c.done.from, true
	case c.done.known:
		return c.done.to, true
	}
	return 0, false
}

// endBefore is when the last step is done, if all take the same time, and limit if that is later or unknown.
func (c *epoch) endBefore(limit time.Duration) time.Duration {
	rate := c.rate()
	if c.latest.place.of == 0 || rate == 0 {
		if c.lags {
			return c.latest.at + (limit-c.latest.at)/2
		}
		return limit
	}
	rest := c.latest.place.of - c.latest.place.at
	if c.started.place.at == 0 {
		rest = max(rest-1, 0) // steps count from 0
	}
	return min(limit, c.latest.at+seconds(rest*rate))
}

// rate is the time of a step in seconds: by the clock, else as printed.
func (c *epoch) rate() float64 {
	if steps := c.latest.place.at - c.started.place.at; steps > 0 {
		return (c.latest.at - c.started.at).Seconds() / steps
	}
	return c.latest.stepTime
}

// over emits the end of the open epoch. cut is set if it ended with the program.
func (e *epochs) over(to time.Duration, stride int, cut bool) {
	c := &e.cur
	if c.ended {
		return
	}
	c.ended = true
	if !c.byEnd && stride > 1 {
		c.epochs = stride
	}
	if c.byEnd && !e.ended && stride > 1 { // the first of them
		c.epochs = stride
		if c.number != stride && c.number != stride-1 {
			c.epochs = 0 // of how many is unknown
		}
	}
	if est := c.started.at - seconds(c.started.place.at*c.rate()); c.loose && c.started.place.at > 0 && c.rate() > 0 &&
		est > c.from && e.amounts.rate == 0 && c.numbered && c.first.at <= c.started.place.at {
		c.from = est // start-up is in no epoch
	}
	if c.epochs == 0 || to < c.from {
		e.drop()
	} else {
		e.emit(Event{Kind: EpochEnd, Epoch: c.number, Epochs: c.epochs, From: c.from, To: to, Loose: c.loose || cut})
		c.shown = false
	}
	if c.end.known && to == c.end.from {
		e.ending = c.endTemplate
	}
	e.ended, e.last, e.lastTo, e.lastLines, e.lastFirst = true, c.number, to, c.lines, c.first
}

func (e *epochs) show() {
	if !e.cur.shown && !e.cur.ended {
		e.cur.shown = true
		e.emit(Event{Kind: EpochBegin, Epoch: e.cur.number, From: e.cur.from, Loose: e.cur.loose})
	}
}

func (e *epochs) drop() {
	if e.cur.shown {
		e.cur.shown = false
		e.emit(Event{Kind: EpochDrop, Epoch: e.cur.number})
	}
}

// forget drops the open epoch: it was none.
func (e *epochs) forget() {
	e.drop()
	e.open = false
}

// update handles another line with the number of the open epoch.
func (e *epochs) update(o *observation) {
	c := &e.cur
	c.lines++
	c.firm = c.firm || o.firm
	c.total = max(c.total, o.total)
	switch {
	case o.evaluates && (c.numbered || c.end.known || c.latest.at > 0 || !c.byEnd) && !c.evaluation:
		c.lags = c.lags || !c.pause.known && c.latest.at > 0 && o.place.at > 0
		c.pause.add(o.at)
	case o.place.known && o.place.of == 0 && o.metric && o.template != c.template && (!c.numbered && c.byEnd ||
		c.numbered && (c.latest.place.of > 0 || o.place.at <= c.latest.place.at)): // in a line of results
		e.endLine(o)
	case o.place.known && (c.numbered || !c.ended):
		e.progress(o)
		c.numbered = true
	case o.begins && c.latest.at == 0:
	default:
		c.lasted(o, true)
		e.endLine(o)
	}
	if c.firm && !c.byEnd {
		e.show()
	}
}

// progress handles a step of the open epoch.
func (e *epochs) progress(o *observation) {
	c := &e.cur
	if o.place.comparable(c.furthest) {
		c.furthest.at = max(c.furthest.at, o.place.at)
	} else if !c.furthest.known {
		c.furthest = o.place
	}
	line := progressLine{o.at, o.place, o.stepTime}
	if !c.started.place.known {
		c.started = line
	}
	c.latest, c.end, c.pause, c.done, c.template, c.lags = line, span{}, span{}, span{}, o.template, false
	last := o.place.of
	if c.started.place.at == 0 && last > 2 {
		last-- // steps count from 0
	}
	if o.place.of > 0 && o.place.at >= last {
		c.done.add(o.at)
	}
}

// endLine handles a line that is printed when an epoch is over.
func (e *epochs) endLine(o *observation) {
	c := &e.cur
	switch {
	case !o.results() && c.latest.at == 0 && !c.byEnd:
		return // a remark at the begin
	case c.end.known && c.endTemplate == o.template:
		if c.endExact != o.exact { // not that of another rank
			c.end.add(o.at)
		}
		return
	case c.pause.known && (c.end.known || c.latest.at > 0):
		return // the epoch was over when its evaluation began
	}
	c.end, c.endTemplate, c.endExact = span{}, o.template, o.exact
	c.end.add(o.at)
	if e.ending == o.template && !c.ended && e.ended {
		e.over(o.at, 1, false)
	}
}

// other handles a line without a number. about is set if it speaks of an epoch.
func (e *epochs) other(o *observation, about bool) {
	c := &e.cur
	if o.place.of > 0 && !o.evaluates && o.elapsed >= 0 {
		e.bar.add(o)
	}
	e.trained = e.trained || o.trains && o.metric
	if !e.open {
		return
	}
	if o.metric && !o.place.known {
		c.unnumbered = o.at
	}
	c.resumed = c.resumed || c.pause.known && c.byEnd && o.trains
	switch {
	case !o.evaluates && !o.place.known && c.lasted(o, about):
		e.endLine(o)
	case o.evaluates || o.saves || c.pause.known && o.metric && !o.place.known:
		if !c.resumed && (c.end.known || c.latest.at > 0 || o.saves || !c.byEnd) {
			c.pause.add(o.at)
		}
	case c.done.known && !c.pause.known && !c.end.known:
		c.done.add(o.at)
	case c.byEnd || c.ended || c.numbered:
	case o.place.of > 0 && (!c.started.place.known || c.started.place.of == o.place.of):
		e.progress(o)
	case about && len(o.durations) > 0:
		e.endLine(o)
	}
}

// lasted reports whether a line says how long the epoch took until now. It may show where the epoch began, if it is
// about one.
func (c *epoch) lasted(o *observation, about bool) bool {
	return slices.ContainsFunc(o.durations, func(d float64) bool {
		from := o.at - seconds(d)
		if about && c.loose && from > c.from && from <= c.firstAt && (c.numbered || c.firstAt-from > (o.at-from)/4) {
			c.from, c.loose = from, false
		}
		return d > 1 && (from-c.from).Abs() <= slack
	})
}

// close handles the end of the program.
func (e *epochs) close(at time.Duration) {
	if !e.open {
		return
	}
	c := &e.cur
	e.open = false
	if e.amounts.used {
		e.amounts.close(e, at)
		return
	}
	if !c.firm && !e.ended {
		e.drop() // one number proves nothing
		return
	}
	to, sure := c.endOf()
	if limit := at; !sure {
		if c.pause.known {
			limit = c.pause.from
		}
		to = c.endBefore(limit)
		sure = to < at
	}
	stride := e.stride
	if c.byEnd && !e.ended {
		stride = 1
	}
	e.over(to, stride, !sure)
}

// late reports whether a line is about the epoch that ended: from another rank, or a progress bar that is drawn again.
// Otherwise it begins an epoch. repeats is set if a rank may print the line more than once in an epoch. A
// new training begins where the epoch began before, so its line is not further.
func (e *epochs) late(number int, at place, repeats bool) bool {
	c := &e.cur
	switch {
	case !e.ended || number != e.last:
		return false
	case e.open && at.of > 0 && at.part() >= latePart: // also the first line of a bar that was only drawn at its end
		return true
	case !at.comparable(e.lastFirst):
		return repeats && e.lateUnplaced(number)
	case at.at <= e.lastFirst.at:
		return false
	case !e.open || !at.comparable(c.furthest):
		return true
	}
	// A rank that is behind by less than an epoch is further in its epoch than the first one is in the next.
	return at.at > c.furthest.at || (at.of == 0 && at.at < c.first.at)
}

// lateUnplaced is late for a line that does not say where in its epoch it is. A new training begins at the number at
// which the one before began.
func (e *epochs) lateUnplaced(number int) bool {
	switch {
	case number > e.origin:
		return !e.open || number < e.cur.number
	case !e.open || number > e.cur.number:
		return false
	}
	return e.lastLines > 1 && e.cur.number != e.cur.total && (e.cur.number+1 != e.cur.total || e.origin != 0)
}
