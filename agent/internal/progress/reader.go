// Package progress reads the output of a training or inference program and says where epochs and model loads begin
// and end. Lines cuts the output into lines, Reader finds the lines that tell something. Neither changes the output:
// somebody else passes it on.
//
// To add a format, add one row to the table in patterns.go: the framework, what a line of it marks, a literal text that
// every such line holds, the expression and a real line as its example. If the literal holds none of the table's gates,
// add a gate too. Then put a whole transcript, byte for byte, into testdata/output and run the tests with -update:
// they write the events beside the transcript and the row into docs/epochs.md. Loads come in pairs of rows; take up
// only lines that were seen in somebody's real log.
package progress

// Reader finds epochs and loads in lines. The first built-in epoch pattern that matches decides the framework, and
// from then on only that framework's patterns are tried. Its memory is bounded whatever it reads.
//
// A Reader is for one goroutine at a time. A program's two outputs need two Lines and one Reader, and a lock held over
// Line and over what is done with its events, so that these stay in order.
type Reader struct {
	epochFormats formats
	loadFormats  formats
	settled      bool // the epoch patterns are down to one framework's, or the user's
	count        int  // epochs seen by a user's pattern that has no number

	epochs epochs
	loads  loads
	events []Event
}

// NewReader fails when a pattern of the user is no regular expression; the error names the option, the place and the
// fault.
func NewReader(options Options) (*Reader, error) {
	r := &Reader{epochFormats: builtin()[0], loadFormats: builtin()[1]}
	emit := func(e Event) { r.events = append(r.events, e) }
	r.epochs.emit, r.loads.emit = emit, emit
	if options.EpochPattern != "" {
		own, err := options.epochs()
		if err != nil {
			return nil, err
		}
		r.epochFormats, r.settled = own, true
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

// Line says what the line tells, nearly always nothing. The line is as Lines hands it over; of a longer one only the
// first MaxLine bytes are read. The events are valid until the next call.
func (r *Reader) Line(line []byte) []Event {
	line = line[:min(len(line), MaxLine)]
	r.events = r.events[:0]
	if m, text, loc := r.epochFormats.match(line); m != nil && r.epoch(m, text, loc) && !r.settled {
		r.epochFormats, r.settled = r.epochFormats.of(m.framework), true
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

// Close says what ends with the program: the open epoch, and loads whose end was never printed, as void.
func (r *Reader) Close() []Event {
	r.events = r.events[:0]
	r.epochs.end(r.epochs.empty)
	r.loads.close()
	return r.events
}

// epoch takes a matching line in. It reports false when the number in it is none.
func (r *Reader) epoch(m *matcher, line []byte, loc []int) bool {
	text := group(line, loc, m.epoch)
	total, _ := integer(group(line, loc, m.total))
	switch {
	case m.marks == announces:
		return true
	case m.marks == finishes:
		done, ok := amount(text)
		if !ok {
			done = -1 // the line does not say: no later line repeats it
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
			r.epochs.reached(done, total)
		}
		return ok
	case !ok:
		return false
	case m.marks == starts:
		r.epochs.begun(number, total)
	case m.marks == ends:
		r.epochs.over(number, total)
	default:
		r.epochs.running(number, total, m.part(line, loc))
	}
	return true
}
