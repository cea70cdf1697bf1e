// Package progress finds the begins and ends of epochs and model loads in the output of a training or inference
// program.
// Lines cuts the output into lines, and Reader recognizes them. Passing the output on is the caller's task.
//
// To add a format, add one row to the table in patterns.go: the framework, the meaning of the line, a literal text that
// every such line holds, the expression, and a real line as its example. If the literal holds none of the table's
// gates, add a gate too. Then put a complete transcript into testdata/output and run the tests with -update: they write
// the events next to the transcript, and the row into docs/epochs.md. Loads come in pairs of rows. Use only lines from
// real logs.
package progress

import "bytes"

// Reader finds epochs and loads in lines. The first built-in epoch pattern that matches decides the framework; then
// only that framework's patterns are tried. Its memory is bounded.
//
// A Reader is for one goroutine at a time. A program's two outputs need two Lines and one Reader. One lock must cover
// Line and the handling of its events, so that they stay in order.
type Reader struct {
	epochFormats formats
	loadFormats  formats
	settled      bool // the epoch patterns are those of one framework, or the user's
	own          bool // the epoch pattern is the user's
	count        int  // epochs seen by a user's pattern that has no number

	ranks  ranks
	epochs epochs
	loads  loads
	hints  hints
	events []Event
}

// NewReader returns an error if a pattern of the user is not a regular expression. It names the option, the place
// and the fault.
func NewReader(options Options) (*Reader, error) {
	r := &Reader{epochFormats: builtin()[0], loadFormats: builtin()[1]}
	emit := func(e Event) { r.events = append(r.events, e) }
	r.epochs.emit, r.loads.emit = emit, emit
	if options.EpochPattern != "" {
		own, err := options.epochs()
		if err != nil {
			return nil, err
		}
		r.epochFormats, r.settled, r.own = own, true, true
	}
	if options.LoadBegin != "" || options.LoadEnd != "" {
		own, err := options.loads()
		if err != nil {
			return nil, err
		}
		r.loadFormats = own
	}
	return r, nil
}

// Line returns the events of a line, nearly always none. The line comes from Lines; only its first MaxLine bytes are
// read. The events are valid until the next call.
func (r *Reader) Line(line []byte) []Event {
	line = line[:min(len(line), MaxLine)]
	r.events = r.events[:0]
	r.hints.line(line)
	if r.epochFormats.pass(line) {
		r.epochLine(line)
	}
	if m, text, loc := r.loadFormats.match(line); m != nil {
		if m.marks == beginsLoad {
			r.loads.begin(m.framework, m.name(text, loc))
		} else {
			r.loads.end(m.framework, m.name(text, loc))
		}
	}
	return r.events
}

// epochLine handles a line that may be about an epoch. The launcher's prefix is removed from it. A user's pattern may
// match with or without.
func (r *Reader) epochLine(line []byte) {
	rank, rest := cutRank(line)
	m, text, loc := r.epochFormats.match(rest)
	if m == nil && r.own && len(rank) > 0 {
		m, text, loc = r.epochFormats.match(line)
	}
	if m == nil || !r.ranks.heard(rank) {
		return
	}
	if r.epoch(m, text, loc) && !r.settled {
		r.epochFormats, r.settled = r.epochFormats.of(m.framework), true
	}
}

// Hint is for a program without epochs.
func (r *Reader) Hint() Hint { return r.hints.hint() }

// Close returns the events of the program's end: the end of the open epoch, and void ends of the open loads.
func (r *Reader) Close() []Event {
	r.events = r.events[:0]
	r.epochs.end(r.epochs.empty)
	r.loads.close()
	return r.events
}

// epoch handles a line that matches. It returns false if the line's number is not valid.
func (r *Reader) epoch(m *matcher, line []byte, loc []int) bool {
	text := group(line, loc, m.epoch)
	total, _ := integer(group(line, loc, m.total))
	switch {
	case m.marks == announces:
		return true
	case m.marks == finishes:
		done, ok := amount(text)
		if !ok {
			done = -1 // the line has no amount, and no later line repeats it
		}
		r.epochs.finish(done)
		return true
	case m.counted:
		r.epochs.begun(r.count, 0)
		r.count++
		return true
	}
	number, ok := integer(text)
	switch {
	case m.marks == reaches || (m.marks == 0 && !ok):
		done, ok := amount(text)
		if ok {
			r.epochs.reached(done, total, bytes.ContainsAny(text, ".e"))
		}
		return ok
	case !ok:
		return false
	case m.marks == starts:
		r.epochs.begun(number, total)
	case m.marks == ends:
		r.epochs.over(number, total)
	default:
		r.epochs.running(number, total, m.place(line, loc))
	}
	return true
}
