package progress

import "math"

// latePart is the minimum fraction at which a line about the previous epoch counts as a late redraw of its bar. A lower
// fraction belongs to a new run that begins again at a smaller number.
const latePart = 0.5

// place is where in an epoch a line was printed.
type place struct {
	known    bool
	fraction bool    // at is a fraction of the epoch, not a number of steps
	at       float64 // steps may count on from epoch to epoch
}

// comparable reports whether two lines count in the same unit.
func (p place) comparable(to place) bool {
	return p.known && to.known && p.fraction == to.fraction
}

// part is the fraction of the epoch that is done, 0 if it is not known.
func (p place) part() float64 {
	if !p.fraction {
		return 0
	}
	return p.at
}

// epochs follows a run from epoch to epoch. Its state has a fixed size.
//
// Several ranks of a training may print the same lines, each a little later than the first. The first line with a new
// number begins an epoch, and a late line of the epoch before is left out: see late.
type epochs struct {
	emit func(Event)

	open     bool
	number   int
	total    int
	fraction float64
	empty    bool // no progress yet: training may have ended when this epoch was opened
	lines    int  // of the open epoch
	first    place
	furthest place
	origin   int // number of the training's first epoch

	ended     bool
	last      int // the latest epoch that ended
	lastLines int
	lastFirst place

	finished   bool
	finishedAt float64 // epochs done at the end of training
}

func (e *epochs) start(number, total int, at place) {
	e.end(false)
	if !e.ended || number <= e.last {
		e.origin = number
	}
	e.open, e.number, e.total, e.fraction, e.empty = true, number, total, at.part(), false
	e.lines, e.first, e.furthest = 1, at, at
	e.emit(Event{Kind: EpochStart, Epoch: number, Fraction: e.fraction, Total: total})
}

func (e *epochs) end(void bool) {
	if !e.open {
		return
	}
	fraction := 1.0
	if void {
		fraction = 0
	}
	e.emit(Event{Kind: EpochEnd, Epoch: e.number, Fraction: fraction, Total: e.total, Void: void})
	e.open = false
	if !void {
		e.ended, e.last, e.lastLines, e.lastFirst = true, e.number, e.lines, e.first
	}
}

// begun handles the start of an epoch. A rank prints it once in an epoch, so a smaller number is a new training.
func (e *epochs) begun(number, total int) {
	if e.open && e.number == number {
		e.progress(total, place{})
		return
	}
	e.start(number, total, place{})
}

// running handles progress within an epoch.
func (e *epochs) running(number, total int, at place) {
	switch {
	case e.open && e.number == number:
		e.progress(total, at)
	case e.late(number, at):
	default:
		e.start(number, total, at)
	}
}

func (e *epochs) progress(total int, at place) {
	e.lines++
	e.fraction = max(e.fraction, at.part())
	if at.comparable(e.furthest) {
		e.furthest.at = max(e.furthest.at, at.at)
	} else if !e.furthest.known {
		e.furthest = at
	}
	if total > 0 {
		e.total = total
	}
	e.emit(Event{Kind: EpochProgress, Epoch: e.number, Fraction: e.fraction, Total: e.total})
}

// late reports whether a line is about the epoch that ended: from another rank, or a progress bar that is drawn again.
// Otherwise it begins an epoch. A new training begins where the epoch began before, so its line is not further.
func (e *epochs) late(number int, at place) bool {
	switch {
	case !e.ended || number != e.last:
		return false
	case e.open && at.part() >= latePart: // also the first line of a bar that was only drawn at its end
		return true
	case !at.comparable(e.lastFirst):
		return e.lateUnplaced(number)
	case at.at <= e.lastFirst.at:
		return false
	case !e.open || !at.comparable(e.furthest):
		return true
	}
	// A rank that is behind by less than an epoch is further in its epoch than the first one is in the next.
	return at.at > e.furthest.at || (!at.fraction && at.at < e.first.at)
}

// lateUnplaced is late for a line that does not say where in its epoch it is. A new training begins at the number at
// which the one before began.
func (e *epochs) lateUnplaced(number int) bool {
	switch {
	case number > e.origin:
		return !e.open || number < e.number
	case !e.open || number > e.number:
		return false
	}
	return e.lastLines > 1 && e.number != e.total && (e.number+1 != e.total || e.origin != 0)
}

// over handles the end of an epoch in a program that prints nothing at its start.
func (e *epochs) over(number, total int) {
	if e.ended && e.last == number {
		return // a second line about the same epoch
	}
	e.emit(Event{Kind: EpochEnd, Epoch: number, Fraction: 1, Total: total})
	e.ended, e.last = true, number
}

// reached handles the number of epochs done. placed is set if it has a fraction.
func (e *epochs) reached(done float64, total int, placed bool) {
	if e.finished && done == e.finishedAt {
		return // the evaluation after the training
	}
	whole := math.Floor(done)
	number, at := int(whole), place{known: placed, fraction: placed, at: done - whole}
	switch {
	case total > 0 && number >= total:
		e.finish(done)
	case e.open && e.number == number:
		e.empty = e.empty && at.at == 0
		e.progress(total, at)
	case e.late(number, at):
	default:
		e.finished = false
		if !e.open && !e.ended && done == 1 {
			e.over(0, total) // the first line comes at the end of the first epoch
		}
		e.start(number, total, at)
		e.empty = at.at == 0 && total == 0
	}
}

// finish handles the end of training after done epochs.
func (e *epochs) finish(done float64) {
	e.end(e.empty && done <= float64(e.number))
	e.finished, e.finishedAt = true, done
}
