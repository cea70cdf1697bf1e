package progress

import "bytes"

const (
	escapeByte = 0x1b
	bell       = 0x07 // ends a string sequence, as ESC \ does
)

// escape is the position within an escape sequence of a terminal (ECMA-48, sections 5.3 and 5.4).
type escape uint8

const (
	outside        escape = iota
	introduced            // after ESC
	designating           // after ESC and an intermediate byte: ESC ( B
	controlling           // in a control sequence: ESC [ parameters, up to its final byte
	inString              // in a command string: ESC ] ... (window titles, links), up to BEL or ESC \
	stringEscaping        // after an ESC in a command string
)

// strip keeps p without its escape sequences.
func (l *Lines) strip(p []byte) {
	for len(p) > 0 {
		switch l.escape {
		case outside:
			i := bytes.IndexByte(p, escapeByte)
			if i < 0 {
				l.keep(p)
				return
			}
			l.keep(p[:i])
			p = p[i+1:]
			l.escape = introduced
		case inString:
			i := bytes.IndexAny(p, "\x07\x1b")
			if i < 0 {
				return
			}
			if p[i] == bell {
				l.escape = outside
			} else {
				l.escape = stringEscaping
			}
			p = p[i+1:]
		default:
			if l.step(p[0]) {
				p = p[1:]
			}
		}
	}
}

// step advances by one byte, and reports whether the byte belongs to the sequence. A byte that does not belong ends the
// sequence and is read again as text, so that a broken sequence loses no other text.
func (l *Lines) step(c byte) bool {
	state := l.escape
	l.escape = outside
	switch {
	case state == stringEscaping && c == '\\':
		return true
	case state == stringEscaping: // the string was cut off by another sequence
		l.escape = introduced
		return false
	case c == escapeByte:
		l.escape = introduced
		return true
	case state == introduced && c == '[':
		l.escape = controlling
		return true
	case state == introduced && (c == ']' || c == 'P' || c == 'X' || c == '^' || c == '_'):
		l.escape = inString
		return true
	case state != controlling && c >= 0x20 && c < 0x30:
		l.escape = designating
		return true
	case state == controlling && c >= 0x20 && c < 0x40:
		l.escape = controlling
		return true
	case state == controlling && movesCursor(c):
		l.end()
		return true
	}
	return c >= 0x30 && c < 0x7f
}

// movesCursor reports whether a final byte moves the cursor to another line or column, as some progress bars do instead
// of "\r". The text after it does not continue the text before it. Moving right (C) only leaves a gap.
func movesCursor(final byte) bool {
	switch final {
	case 'A', 'B', 'D', 'E', 'F', 'G', 'H', 'f':
		return true
	}
	return false
}
