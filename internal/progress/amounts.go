package progress

import (
	"cmp"
	"math"
	"time"
)

// amounts follows a program that prints how many epochs are done: 0.33, or 2 of 3 in a bar. An epoch begins where a
// steady pace reaches its number.
type amounts struct {
	used     bool
	done     float64
	at       time.Duration // of the first line with done
	rate     float64       // epochs a second
	finished bool
}

func (e *epochs) reached(o *observation) {
	a, c := &e.amounts, &e.cur
	whole := math.Floor(o.number)
	number := int(whole)
	within := place{known: true, at: o.number - whole, of: 1}
	switch {
	case e.open && !a.used && c.firm, !a.used && o.alone:
		return // whole epochs are counted, or it is a setting
	case a.finished && o.number == a.done:
		return // the evaluation after the training
	case a.used && e.open && number != c.number && e.late(number, within, true):
		return // of another rank
	case !a.used || a.finished || o.number < a.done:
		if a.used && (e.open && number == c.number || !e.open && e.late(number, within, true)) {
			return // of another rank
		}
		e.firstAmount(o, number, whole)
		c.first, c.furthest = within, within
		return
	case o.number == a.done && o.evaluates && c.lines == 1 && o.number == whole:
		c.from = max(c.from, o.at) // the epoch begins behind the evaluation of the one before
		return
	case o.number == a.done && !o.sums:
		return
	}
	if o.sums {
		e.finishAmounts(o)
		return
	}
	rate := (o.number - a.done) / max((o.at-a.at).Seconds(), 1e-9)
	if number == c.number {
		if a.rate == 0 && c.loose {
			c.from = max(c.from, a.at-seconds((a.done-math.Floor(a.done))/rate))
		}
		a.rate, a.done, a.at = rate, o.number, o.at
		c.lines++
		c.furthest = within
		return
	}
	to := o.at - seconds((o.number-whole)/cmp.Or(a.rate, rate))
	to = min(max(to, a.at), o.at)
	from := to
	if o.evaluates {
		to, from = min(o.at, a.at+seconds((whole-a.done)/cmp.Or(a.rate, rate))), o.at
	}
	e.over(to, number-c.number, false)
	a.done, a.at = o.number, o.at
	if o.total > 0 && number >= o.total {
		a.finished, e.open = true, false
		return
	}
	*c = epoch{number: number, total: o.total, epochs: 1, from: from, firm: true, lines: 1,
		first: within, furthest: within}
	e.show()
}

// firstAmount begins a training.
func (e *epochs) firstAmount(o *observation, number int, whole float64) {
	if e.open && !e.amounts.used {
		e.over(o.at, 1, false)
	} else if e.open {
		e.over(e.amounts.at, 1, false)
	}
	from, printed := e.lastTo, false
	if o.elapsed >= 0 && o.total > 0 { // a bar over the epochs
		from, printed = max(from, o.at-seconds(o.elapsed)), true
	} else if e.bar.known && e.bar.latest > from {
		from, printed = e.bar.latest, true
	}
	e.amounts = amounts{used: true, done: o.number, at: o.at}
	e.open, e.cur = true, epoch{number: number, total: o.total, epochs: 1, from: from, firm: true, lines: 1,
		loose: !printed && !e.ended}
	if number == 1 && o.number == whole && !e.ended { // the first line comes at the end of the first epoch
		e.cur.number = 0
		e.over(o.at, 1, false)
		e.cur = epoch{number: 1, total: o.total, epochs: 1, from: o.at, firm: true, lines: 1}
	}
	e.show()
}

// finishAmounts handles the line that sums a training up.
func (e *epochs) finishAmounts(o *observation) {
	a := &e.amounts
	switch {
	case o.number > a.done:
		e.over(o.at, 1, false)
	case a.done == math.Floor(a.done):
		e.drop()
	default:
		e.over(a.at, 1, false)
	}
	a.finished, a.done, e.open = true, o.number, false
}

// close handles the end of the program within a training.
func (a *amounts) close(e *epochs, at time.Duration) {
	if a.done == math.Floor(a.done) && e.cur.lines <= 1 {
		e.drop()
		return
	}
	e.over(at, 1, true)
}
