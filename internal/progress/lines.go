package progress

import (
	"bytes"
	"unicode/utf8"
)

// MaxLine is the maximum length of a line in bytes, without escape sequences. The rest of a longer line is dropped.
const MaxLine = 8 << 10

// Lines cuts a program's output into lines. A line ends at "\n", at "\r" (progress bars redraw with it) and where the
// terminal's cursor moves elsewhere. Escape sequences are removed, bytes that are not UTF-8 become U+FFFD, and empty
// lines are skipped. It holds at most about 32 KiB, and allocates nothing per line once its buffers have grown.
//
// Lines is for one stream and one goroutine at a time.
type Lines struct {
	each   func(line []byte)
	line   []byte // the unfinished line
	valid  []byte // the last line that had to be made UTF-8
	escape escape
}

// NewLines passes every line to each, without its ending. The bytes are valid only during the call.
func NewLines(each func(line []byte)) *Lines {
	return &Lines{each: each}
}

// Write processes the next piece of output. It never fails.
func (l *Lines) Write(p []byte) (int, error) {
	for rest, ended := p, true; ended; {
		var row []byte
		row, rest, ended = cut(rest, '\n')
		for returned := true; returned; {
			var piece []byte
			piece, row, returned = cut(row, '\r')
			l.text(piece, returned || ended)
		}
	}
	return len(p), nil
}

// Close passes on the last line if it has no ending. Lines may be written to again.
func (l *Lines) Close() {
	l.text(nil, true)
}

// cut is bytes.Cut for one byte, which the compiler can inline into the loops above.
func cut(p []byte, at byte) (before, after []byte, found bool) {
	if i := bytes.IndexByte(p, at); i >= 0 {
		return p[:i], p[i+1:], true
	}
	return p, nil, false
}

// text processes a piece of one line; ends reports whether the line ends with it. Nearly every piece is a whole line
// without escape sequences, which is passed on without a copy.
func (l *Lines) text(p []byte, ends bool) {
	if l.escape == outside && bytes.IndexByte(p, escapeByte) < 0 {
		if ends && len(l.line) == 0 {
			l.deliver(p)
			return
		}
		l.keep(p)
	} else {
		l.strip(p)
	}
	if ends {
		l.escape = outside // a sequence that the line does not complete must not hide the next line
		l.end()
	}
}

func (l *Lines) end() {
	l.deliver(l.line)
	l.line = l.line[:0]
}

func (l *Lines) keep(p []byte) {
	l.line = append(l.line, p[:min(len(p), MaxLine-len(l.line))]...)
}

func (l *Lines) deliver(line []byte) {
	if len(line) == 0 {
		return
	}
	line = line[:min(len(line), MaxLine)]
	if !utf8.Valid(line) {
		l.valid = l.valid[:0]
		for _, r := range string(line) { // no copy: the compiler ranges over the bytes themselves
			l.valid = utf8.AppendRune(l.valid, r)
		}
		line = l.valid
	}
	l.each(line)
}
