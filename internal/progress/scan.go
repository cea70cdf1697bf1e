package progress

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// kind is the form of a token.
type form uint8

const (
	word    form = iota + 1 // letters, with underscores within
	integer                 // digits alone
	decimal                 // with a point or an exponent
	clock                   // 0:02:51 or 00:14.5: a duration or a time of the day, in seconds
	date                    // 2026-05-04, 05/04 before a clock
)

// token is a word or a number of a line. What is between two tokens separates them.
type token struct {
	form     form
	from, to int // in the line
	value    float64
	class    class // of a word that is known
}

// maxTokens bounds what is read of a line. A longer line of metrics has its counters at its beginning.
const maxTokens = 256

// scan appends the tokens of a line. It looks at each byte a fixed number of times.
func scan(tokens []token, line []byte) []token {
	for i := 0; i < len(line) && len(tokens) < maxTokens; {
		t := token{to: i + 1}
		switch c := line[i]; {
		case alphabetic(c):
			t = readWord(line, i)
		case digit(c):
			t = number(line, i)
		case c >= utf8.RuneSelf:
			t = foreignWord(line, i)
		}
		if t.form != 0 {
			tokens = append(tokens, t)
		}
		i = t.to
	}
	return tokens
}

// foreignWord reads the word at i, that does not begin in ASCII. A language that puts no blank between words has
// only those that are known.
func foreignWord(line []byte, i int) token {
	if foreignLead[line[i]] {
		for _, w := range foreign {
			if bytes.HasPrefix(line[i:], []byte(w.text)) {
				return token{form: word, from: i, to: i + len(w.text), class: w.class}
			}
		}
	}
	if foreignAt(line[i:]) > 0 {
		return readWord(line, i)
	}
	return token{to: i + 1}
}

// foreignAt is the length of an alphabetic character beyond ASCII at the begin of text; 0 if it begins otherwise.
func foreignAt(text []byte) int {
	if r, n := utf8.DecodeRune(text); n == 2 && unicode.IsLetter(r) {
		return n
	}
	return 0
}

// maxWord is the length of the longest word that may be known.
const maxWord = 32

// readWord reads the word at i, and looks it up.
func readWord(line []byte, i int) token {
	to := i
	for n := 1; n > 0; to += n {
		switch {
		case to == len(line) || line[to] >= utf8.RuneSelf:
			n = foreignAt(line[to:])
		case !alphabetic(line[to]) && line[to] != '_':
			n = 0
		default:
			n = 1
		}
	}
	t := token{form: word, from: i, to: to}
	if to-i <= maxWord {
		var low [maxWord + utf8.UTFMax]byte
		t.class = vocabulary[string(lower(low[:0], line[i:to]))]
	}
	return t
}

// lower appends a word in lower case.
func lower(low, name []byte) []byte {
	for i, c := range name {
		switch {
		case c >= utf8.RuneSelf:
			for _, r := range string(name[i:]) { // no copy: the compiler ranges over the bytes themselves
				small := unicode.ToLower(r)
				if utf8.RuneLen(small) != utf8.RuneLen(r) { // as of U+0130: offsets in low are those in name
					small = r
				}
				low = utf8.AppendRune(low, small)
			}
			return low
		case c >= 'A' && c <= 'Z':
			c |= 0x20
		}
		low = append(low, c)
	}
	return low
}

func alphabetic(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
func digit(c byte) bool      { return c >= '0' && c <= '9' }

// digits reads digits as a value.
func digits(line []byte, i int) (value float64, to int) {
	for to = i; to < len(line) && digit(line[to]); to++ {
		value = value*10 + float64(line[to]-'0')
	}
	return value, to
}

// number reads the number, clock or date at i.
func number(line []byte, i int) token {
	value, to := digits(line, i)
	t := token{form: integer, from: i, to: to, value: value}
	if to == len(line) {
		return t
	}
	switch c := line[to]; {
	case c == ':' && t.clock(line):
	case (c == '-' || c == '/') && t.date(line):
	case c == ',' && t.thousands(line):
	case c == '.' && to+1 < len(line) && digit(line[to+1]), c == ',' && t.comma(line):
		t.form = decimal
		t.fraction(line)
		t.exponent(line)
	default:
		t.exponent(line)
	}
	return t
}

// thousands reads 1,234,000.
func (t *token) thousands(line []byte) bool {
	end, value := t.to, t.value
	for end+1 < len(line) && line[end] == ',' {
		part, to := digits(line, end+1)
		if to != end+4 {
			break
		}
		value, end = value*1000+part, to
	}
	if end == t.to || t.to-t.from > 3 || t.value == 0 || end+1 < len(line) && line[end] == ',' && digit(line[end+1]) {
		return false
	}
	t.value, t.to = value, end
	return true
}

// comma reports whether the comma behind a number is that of a fraction: 0,91, but none of a list.
func (t *token) comma(line []byte) bool {
	_, to := digits(line, t.to+1)
	return to > t.to+1 && (t.from == 0 || line[t.from-1] != ',' && line[t.from-1] != '(' && line[t.from-1] != '[') &&
		(to == len(line) || line[to] != ',' && line[to] != '.')
}

func (t *token) fraction(line []byte) {
	from := t.to + 1
	part, to := digits(line, from)
	for range min(to-from, 300) {
		part /= 10
	}
	t.value, t.to = t.value+part, to
}

// exponent reads e-05. The value is good for a comparison with the clock.
func (t *token) exponent(line []byte) {
	rest := line[t.to:]
	if len(rest) < 3 || rest[0]|0x20 != 'e' || rest[1] != '-' && rest[1] != '+' || !digit(rest[2]) {
		return
	}
	n, to := digits(line, t.to+2)
	for range min(int(n), 20) {
		if rest[1] == '-' {
			t.value /= 10
		} else {
			t.value *= 10
		}
	}
	t.form, t.to = decimal, to
}

// clock reads :MM or :MM:SS behind a number.
func (t *token) clock(line []byte) bool {
	end, value := t.to, t.value
	for range 2 {
		part, to := digits(line, min(end+1, len(line)))
		if end == len(line) || line[end] != ':' || to != end+3 {
			break
		}
		value, end = value*60+part, to
	}
	if end == t.to {
		return false
	}
	t.form, t.value, t.to = clock, value, end
	if end+1 < len(line) && (line[end] == '.' || line[end] == ',') && digit(line[end+1]) {
		t.fraction(line)
	}
	return true
}

// date reads 2026-05-04, 2026/05/04 and 05/04/2026, and 05-04 before a clock.
func (t *token) date(line []byte) bool {
	mark := line[t.to]
	_, month := digits(line, t.to+1)
	if month != t.to+3 {
		return false
	}
	end := month
	year := month
	if month < len(line) && line[month] == mark {
		_, year = digits(line, month+1)
	}
	if first := t.to - t.from; year > month && (first == 4 || first == 2 && year == month+len("/2026")) {
		end = year
	} else if next := bytes.TrimLeft(line[month:min(month+4, len(line))], " "); t.to-t.from != 2 || len(next) < 3 ||
		!digit(next[0]) || next[2] != ':' || line[month] != ' ' {
		return false
	}
	t.form, t.to = date, end
	return true
}
