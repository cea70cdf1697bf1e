// Package progress finds the begins and ends of epochs and model loads in the output of a training or inference
// program.
// Lines cuts the output into lines, and Reader recognizes them. Passing the output on is the caller's task.
//
// The Reader knows no framework. scan makes tokens of a line, observe reads what its words and numbers say, and epochs
// and loads decide by the lines around it. A program that is read wrongly is a case for one of those rules: put a
// complete transcript into testdata/output, and run the tests with -update, which write the events next to it.
package progress

import (
	"bytes"
	"math"
	"slices"
	"time"
)

// Reader finds epochs and loads in lines. Its memory is bounded, and so is the time for a line.
//
// A Reader is for one goroutine at a time. A program's two outputs need two Lines and one Reader. One lock must cover
// Line and the handling of its events, so that they stay in order.
type Reader struct {
	own     ownPatterns
	text    text
	heading int  // column of the epoch in a table whose heading was printed; -1 for none
	code    bool // the next line may be of a program's source
	rows    bool // that it is a heading is sure: prose has commas, too

	ranks  ranks
	epochs epochs
	nested nested
	loads  loads
	hints  hints
	events []Event
}

// NewReader returns an error if a pattern of the user is not a regular expression. It names the option, the place
// and the fault.
func NewReader(options Options) (*Reader, error) {
	own, err := options.compile()
	if err != nil {
		return nil, err
	}
	r := &Reader{own: own, heading: -1}
	emit := func(e Event) { r.events = append(r.events, e) }
	r.epochs.emit, r.loads.emit = emit, emit
	return r, nil
}

// Line returns the events of a line that was printed at a time since the program's start, nearly always none. The line
// comes from Lines; only its first MaxLine bytes are read. The events are valid until the next call.
func (r *Reader) Line(at time.Duration, line []byte) []Event {
	line = line[:min(len(line), MaxLine)]
	r.events = r.events[:0]
	if len(line) == 0 {
		return nil
	}
	rank, rest := cutRank(line)
	code := r.code && len(bytes.TrimLeft(rest, " \t")) < len(rest)
	if r.code = namesCode(rest); code {
		return nil
	}
	r.text.line, r.text.tokens = rest, scan(r.text.tokens[:0], rest)
	r.hints.line(&r.text)
	if r.own.epochs() {
		r.ownEpoch(at, rank, line, rest)
	} else {
		r.epochLine(at, rank)
	}
	if r.own.loadBegin != nil {
		r.ownLoad(at, line)
	} else {
		r.loads.line(at, &r.text)
	}
	if r.epochs.open && len(r.loads.open) > 0 {
		r.loads.trains(r.epochs.cur.firstAt)
	}
	return r.events
}

// namesCode reports whether Python prints a line of source below a line: in a traceback, or for a warning.
func namesCode(line []byte) bool {
	return bytes.Contains(line, []byte(`File "`)) && bytes.Contains(line, []byte(`", line `)) ||
		bytes.Contains(line, []byte("Warning: ")) && bytes.Contains(line, []byte(".py:"))
}

// epochLine handles a line by its own words and numbers.
func (r *Reader) epochLine(at time.Duration, rank []byte) {
	x := &r.text
	if column := x.epochColumn(); column >= 0 {
		r.heading, r.rows = column, bytes.IndexByte(x.line, ',') < 0
		return
	}
	row := -1
	if r.heading >= 0 {
		row = x.cell(r.heading)
	}
	o := x.observe(at, row)
	r.rows = r.rows || row >= 0
	if r.rows && r.heading >= 0 && row < 0 {
		o.numbered = false // the table counts
	}
	counted := !o.numbered && r.heading < 0 && !o.evaluates && x.findNested(&o)
	if (o.numbered || counted && (o.firm || r.nested.proven)) && !r.ranks.heard(rank) {
		return
	}
	o.template, o.exact = x.template(o.numbered || counted || r.epochs.open)
	switch {
	case o.numbered:
		r.epochs.line(&o)
	case counted:
		r.nested.line(&o, &r.epochs)
	default:
		r.epochs.other(&o, bytes.Contains(x.line, []byte("poch")))
	}
}

// Hint is for a program without epochs.
func (r *Reader) Hint() Hint { return r.hints.hint() }

// Close returns the events of the program's end: the end of the open epoch, and the drops of the open loads.
func (r *Reader) Close(at time.Duration) []Event {
	r.events = r.events[:0]
	r.epochs.close(at)
	r.loads.close()
	return r.events
}

// nested follows a line whose epoch has no word: 1|50|Loss. It is one if it rises by one where the line's other counter
// begins again.
type nested struct {
	proven      bool
	lines       int // with the number
	first, last observation
	end         observation // of the line behind them that has the number alone, if at is not 0
}

// findNested reads a number without a word: behind "Train:", at the begin of a line, or in a list of steps. It needs a
// place in the epoch, but in the list.
func (x *text) findNested(o *observation) bool {
	if i := slices.IndexFunc(x.tokens, func(t token) bool { return t.class&stepWord != 0 }); i >= 0 && x.listAt(o, i+1) {
		return true
	}
	i := slices.IndexFunc(x.tokens, func(t token) bool { return t.class&trainWord != 0 })
	return i >= 0 && !x.dotted(i) && len(bytes.Trim(x.between(i+1), aroundNumber)) == 0 && x.nestedAt(o, i+1) ||
		len(bytes.Trim(x.between(0), " [(")) == 0 && x.nestedAt(o, 0)
}

func (x *text) nestedAt(o *observation, i int) bool {
	if !x.integer(i) || x.glued(i) || x.percentAt(i) {
		return false
	}
	total, next, _ := x.pair(i)
	n := *o
	n.place = place{}
	x.findPlace(&n, i, next)
	if n.place.of == 0 || x.tokens[i].value > maxNumber {
		return false
	}
	n.number, n.total, n.begins, n.firm = x.tokens[i].value, int(min(total, maxNumber)), false, i > 0
	for next < len(x.tokens) && x.tokens[next].form == word {
		next++
	}
	n.lead = x.words(next)
	*o = n
	return true
}

// listAt reads "step": [0, 10] of epoch 0, and [0] at its end.
func (x *text) listAt(o *observation, i int) bool {
	if !x.integer(i) || x.tokens[i].value > maxNumber || bytes.IndexByte(x.between(i), '[') < 0 {
		return false
	}
	o.number, o.place, o.lead = x.tokens[i].value, place{}, x.words(i)
	if x.integer(i+1) && string(x.between(i+1)) == ", " {
		o.place = place{known: true, at: x.tokens[i+1].value}
		i++
	}
	return bytes.HasPrefix(x.between(i+1), []byte("]"))
}

func (n *nested) line(o *observation, e *epochs) {
	if !n.proven && o.firm {
		n.proven = true
	}
	if n.proven {
		o.firm = true
		e.line(o)
		return
	}
	switch {
	case !o.place.known:
		if n.lines > 0 && n.first.number == o.number {
			n.end = *o
		}
		return
	case n.lines > 0 && n.first.lead == o.lead && n.first.number == o.number:
		n.last, n.end.at = *o, 0
		n.lines++
		return
	case n.lines > 1 && n.first.lead == o.lead && n.first.number+1 == o.number &&
		o.place.part() < n.last.place.part():
		n.proven = true
		n.first.firm = true
		e.line(&n.first)
		e.line(&n.last)
		if n.end.at > 0 {
			e.line(&n.end)
		}
		e.line(o)
		return
	}
	n.first, n.last, n.end.at, n.lines = *o, *o, 0, 1
}

// Tables.

const minColumns = 3

// epochColumn returns the column of the epoch if a line is the heading of a table; -1 if not.
func (x *text) epochColumn() int {
	column, cells := -1, 0
	for i := range x.tokens {
		if x.tokens[i].form != word && !x.inName(i) {
			return -1
		}
		if !x.cellBegins(i) {
			continue
		}
		if column < 0 && (x.is(i, epochWord) || x.lowerIs(i, "e") && bytes.Contains(x.between(i+1), []byte("#"))) {
			column = cells
		}
		cells++
	}
	if cells < minColumns {
		return -1
	}
	return column
}

// inName reports whether a number is the end of a name, as in mAP50.
func (x *text) inName(i int) bool {
	from := x.tokens[i].from
	return from > 0 && (alphabetic(x.line[from-1]) || x.line[from-1] == '_')
}

// cellBegins reports whether a token is the first of a cell.
func (x *text) cellBegins(i int) bool {
	gap := x.between(i)
	return i == 0 || bytes.Contains(gap, []byte("  ")) || bytes.ContainsAny(gap, "\t|│┃,;")
}

// cell returns the token at the begin of a column of a row of results; -1 if the line is no such row.
func (x *text) cell(column int) int {
	cells, found, measured := 0, -1, false
	for i := range x.tokens {
		whole := x.integer(i) || x.counts(i) && cells == column && x.tokens[i].value == math.Trunc(x.tokens[i].value)
		measured = measured || x.tokens[i].form == decimal && !whole
		if !x.cellBegins(i) {
			continue
		}
		if cells == column && whole {
			found = i
		}
		cells++
	}
	if cells < minColumns || !measured {
		return -1
	}
	return found
}
