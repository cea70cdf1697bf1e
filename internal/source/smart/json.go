package smart

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// Bounds on what smartctl may print. A drive in a shelf of 24 prints about 30 KiB.
const (
	mostText  = 4 << 20 // bytes
	deepest   = 32      // objects and arrays within one another; smartctl's own go to 8
	mostItems = 256     // of an array that is read
	mostWord  = 128     // bytes of a name
)

// number is a JSON number, or a string that is one, as smartctl prints gigabytes. Whatever else stands there is not told.
type number struct {
	value float64
	told  bool
}

// UnmarshalJSON implements json.Unmarshaler and never fails.
func (n *number) UnmarshalJSON(text []byte) error {
	*n = number{}
	word := string(text)
	if strings.HasPrefix(word, `"`) {
		if json.Unmarshal(text, &word) != nil {
			return nil
		}
		word = strings.TrimSpace(word)
	}
	if len(word) > 64 || strings.Trim(word, "0123456789+-.eE") != "" {
		return nil
	}
	value, err := strconv.ParseFloat(word, 64)
	n.value, n.told = value, err == nil && !math.IsInf(value, 0) && !math.IsNaN(value)
	return nil
}

// within says whether a number is told and lies between two others.
func (n number) within(low, high float64) bool { return n.told && n.value >= low && n.value <= high }

// count says whether a number is one of things: whole, and not below zero.
func (n number) count() bool { return n.within(0, 1<<63) && n.value == math.Trunc(n.value) }

// truth is a JSON bool. Whatever else stands there is not told; wrong says that something else but null does.
type truth struct{ value, told, wrong bool }

// UnmarshalJSON implements json.Unmarshaler and never fails.
func (f *truth) UnmarshalJSON(text []byte) error {
	word := string(text)
	told := word == "true" || word == "false"
	*f = truth{word == "true", told, !told && word != "null"}
	return nil
}

// word is a JSON string in printable characters, cut to a bound. Whatever else stands there is "".
type word string

// UnmarshalJSON implements json.Unmarshaler and never fails.
func (w *word) UnmarshalJSON(text []byte) error {
	*w = ""
	var s string
	if json.Unmarshal(text, &s) == nil {
		*w = word(clean(s, mostWord))
	}
	return nil
}

// sentence is a longer one.
type sentence string

// UnmarshalJSON implements json.Unmarshaler and never fails.
func (w *sentence) UnmarshalJSON(text []byte) error {
	*w = ""
	var s string
	if json.Unmarshal(text, &s) == nil {
		*w = sentence(clean(s, 4*mostWord))
	}
	return nil
}

// clean makes one line of a text, without what would move a terminal's cursor, and cuts it.
func clean(s string, most int) string {
	if len(s) > most {
		s = s[:most]
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsGraphic(r):
			return r
		}
		return -1
	}, strings.ToValidUTF8(s, ""))
	return strings.Join(strings.Fields(s), " ")
}

// list is the first mostItems elements of a JSON array. Whatever else stands there is empty.
type list[T any] []T

// UnmarshalJSON implements json.Unmarshaler and never fails.
func (l *list[T]) UnmarshalJSON(text []byte) error {
	*l = nil
	d := json.NewDecoder(bytes.NewReader(text))
	if first, err := d.Token(); err != nil || first != json.Delim('[') {
		return nil
	}
	for d.More() && len(*l) < mostItems {
		var item T
		if err := d.Decode(&item); err != nil && !isType(err) {
			return nil
		}
		*l = append(*l, item)
	}
	return nil
}

// vital is an object or array (begins is its first character) that must not go missing unnoticed: a drive would be called
// well for want of it. Where something else but null stands there, wrong says so, and nothing of it is read.
type vital[T any, B begins] struct {
	is    T
	wrong bool
}

// begins is what the JSON of a vital part begins with.
type begins interface{ first() byte }

type (
	object struct{}
	array  struct{}
)

func (object) first() byte { return '{' }
func (array) first() byte  { return '[' }

// UnmarshalJSON implements json.Unmarshaler and never fails.
func (p *vital[T, B]) UnmarshalJSON(text []byte) error {
	*p = vital[T, B]{}
	var b B
	if p.wrong = text[0] != b.first() && string(text) != "null"; !p.wrong {
		_ = json.Unmarshal(text, &p.is) // what is of another type in it is left out
	}
	return nil
}

// isType says that err is of a value of another type than was looked for: it was left out, and the rest was read.
func isType(err error) bool {
	var wrong *json.UnmarshalTypeError
	return errors.As(err, &wrong)
}

var (
	errEmpty = errors.New("smartctl printed nothing")
	errOld   = errors.New("this smartctl is older than 7.0, which is the first that prints JSON: update smartmontools")
)

// decode reads one object into out. Values of another type than expected are left out.
func decode(text []byte, out any) error {
	text = bytes.TrimSpace(text)
	switch {
	case len(text) == 0:
		return errEmpty
	case len(text) > mostText:
		return fmt.Errorf("it is longer than %d MiB, which smartctl's JSON of one drive never is", mostText>>20)
	case bytes.HasPrefix(text, []byte("smartctl ")):
		if bytes.Contains(text, []byte("RECOGNIZED OPTION")) || bytes.HasPrefix(text, []byte("smartctl 6.")) {
			return errOld
		}
		return errors.New("it is smartctl's text, not its JSON: call smartctl with --json")
	case text[0] != '{':
		return fmt.Errorf("it is not smartctl's JSON: it begins with %.20q", text)
	}
	if tooDeep(text) {
		return fmt.Errorf("it is not smartctl's JSON: it is nested deeper than %d levels", deepest)
	}
	if err := json.Unmarshal(text, out); err != nil && !isType(err) {
		return fmt.Errorf("it is not whole JSON: %w", err)
	}
	return nil
}

// tooDeep says whether objects and arrays lie deeper within one another than deepest.
func tooDeep(text []byte) bool {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			if depth++; depth > deepest {
				return true
			}
		case c == '}', c == ']':
			depth--
		}
	}
	return false
}
