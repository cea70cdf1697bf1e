package progress

import "math"

// latePart is the minimum fraction at which a line about the previous epoch counts as a late redraw of its bar. A lower
// fraction belongs to a new run that begins again at a smaller number.
const latePart = 0.5

// epochs follows a run from epoch to epoch. Its state has a fixed size.
type epochs struct {
	emit func(Event)

	open     bool
	number   int
	total    int
	fraction float64
	empty    bool // no progress yet: training may have ended when this epoch was opened

	ended bool
	last  int // the latest epoch that ended

	finished   bool
	finishedAt float64 // epochs done at the end of training
}

func (e *epochs) start(number, total int, fraction float64) {
	e.end(false)
	e.open, e.number, e.total, e.fraction, e.empty = true, number, total, fraction, false
	e.emit(Event{Kind: EpochStart, Epoch: number, Fraction: fraction, Total: total})
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
	e.open, e.ended, e.last = false, true, e.number
}

// begun handles the start of an epoch.
func (e *epochs) begun(number, total int) {
	if e.open && e.number == number {
		e.progress(total, 0)
		return
	}
	e.start(number, total, 0)
}

// running handles progress within an epoch.
func (e *epochs) running(number, total int, fraction float64) {
	switch {
	case e.open && e.number == number:
		e.progress(total, fraction)
	case e.open && e.ended && e.last == number && fraction >= latePart:
		// the bar of the finished epoch, drawn again
	default:
		e.start(number, total, fraction)
	}
}

func (e *epochs) progress(total int, fraction float64) {
	e.fraction = max(e.fraction, fraction)
	if total > 0 {
		e.total = total
	}
	e.emit(Event{Kind: EpochProgress, Epoch: e.number, Fraction: e.fraction, Total: e.total})
}

// over handles the end of an epoch in a program that prints nothing at its start.
func (e *epochs) over(number, total int) {
	if e.ended && e.last == number {
		return // a second line about the same epoch
	}
	e.emit(Event{Kind: EpochEnd, Epoch: number, Fraction: 1, Total: total})
	e.ended, e.last = true, number
}

// reached handles the number of epochs done, with a fraction.
func (e *epochs) reached(done float64, total int) {
	if e.finished && done == e.finishedAt {
		return // the evaluation after the training
	}
	e.finished = false
	whole := math.Floor(done)
	number, fraction := int(whole), done-whole
	switch {
	case total > 0 && number >= total:
		e.finish(done)
	case e.open && e.number == number:
		e.empty = e.empty && fraction == 0
		e.progress(total, fraction)
	default:
		if !e.open && !e.ended && done == 1 {
			e.over(0, total) // the first line comes at the end of the first epoch
		}
		e.start(number, total, fraction)
		e.empty = fraction == 0 && total == 0
	}
}

// finish handles the end of training after done epochs.
func (e *epochs) finish(done float64) {
	e.end(e.empty && done <= float64(e.number))
	e.finished, e.finishedAt = true, done
}
