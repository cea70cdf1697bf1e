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

// Bounds on the output of smartctl. A drive in an enclosure of 24 prints about 30 KiB.
const (
	maxOutput = 4 << 20 // bytes
	maxDepth  = 32      // nested objects and arrays; smartctl uses 8
	maxItems  = 256     // elements of an array
	maxWord   = 128     // bytes of a name
)

// number is a JSON number, or a string with one, as smartctl prints gigabytes. Any other JSON is an unknown number.
type number struct {
	value float64
	known bool
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
	n.value, n.known = value, err == nil && !math.IsInf(value, 0) && !math.IsNaN(value)
	return nil
}

// within reports whether a number is known and in a range.
func (n number) within(low, high float64) bool { return n.known && n.value >= low && n.value <= high }

// count reports whether a number can be a count: an integer that is not negative.
func (n number) count() bool { return n.within(0, 1<<63) && n.value == math.Trunc(n.value) }

// truth is a JSON bool. Any other JSON is unknown, and invalid unless it is null.
type truth struct{ value, known, invalid bool }

// UnmarshalJSON implements json.Unmarshaler and never fails.
func (f *truth) UnmarshalJSON(text []byte) error {
	word := string(text)
	known := word == "true" || word == "false"
	*f = truth{word == "true", known, !known && word != "null"}
	return nil
}

// word is a JSON string, cleaned and cut to maxWord. Any other JSON is "".
type word string

// UnmarshalJSON implements json.Unmarshaler and never fails.
func (w *word) UnmarshalJSON(text []byte) error {
	*w = ""
	var s string
	if json.Unmarshal(text, &s) == nil {
		*w = word(clean(s, maxWord))
	}
	return nil
}

// sentence is a longer word.
type sentence string

// UnmarshalJSON implements json.Unmarshaler and never fails.
func (w *sentence) UnmarshalJSON(text []byte) error {
	*w = ""
	var s string
	if json.Unmarshal(text, &s) == nil {
		*w = sentence(clean(s, 4*maxWord))
	}
	return nil
}

// clean makes a text one line without control characters, and cuts it.
func clean(s string, maxBytes int) string {
	if len(s) > maxBytes {
		s = s[:maxBytes]
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

// list is the first maxItems elements of a JSON array. Any other JSON is an empty list.
type list[T any] []T

// UnmarshalJSON implements json.Unmarshaler and never fails.
func (l *list[T]) UnmarshalJSON(text []byte) error {
	*l = nil
	d := json.NewDecoder(bytes.NewReader(text))
	if first, err := d.Token(); err != nil || first != json.Delim('[') {
		return nil
	}
	for d.More() && len(*l) < maxItems {
		var item T
		if err := d.Decode(&item); err != nil && !isTypeError(err) {
			return nil
		}
		*l = append(*l, item)
	}
	return nil
}

// required is an object or array without which a drive could be assessed as healthy by mistake. jsonKind is the kind.
// Any other JSON except null sets invalid.
type required[T any, B jsonKind] struct {
	value   T
	invalid bool
}

// jsonKind is the kind of JSON of a required part.
type jsonKind interface{ first() byte }

type (
	object struct{}
	array  struct{}
)

func (object) first() byte { return '{' }
func (array) first() byte  { return '[' }

// UnmarshalJSON implements json.Unmarshaler and never fails.
func (p *required[T, B]) UnmarshalJSON(text []byte) error {
	*p = required[T, B]{}
	var b B
	if p.invalid = text[0] != b.first() && string(text) != "null"; !p.invalid {
		_ = json.Unmarshal(text, &p.value) // values of another type are left out
	}
	return nil
}

// isTypeError reports whether an error is about a value of another type, which was left out while the rest was read.
func isTypeError(err error) bool {
	var invalid *json.UnmarshalTypeError
	return errors.As(err, &invalid)
}

var (
	errEmpty = errors.New("smartctl printed nothing")
	errOld   = errors.New("this smartctl is older than 7.0, the first version that prints JSON: update smartmontools")
)

// decode reads an object. Values of another type than expected are left out.
func decode(text []byte, out any) error {
	text = bytes.TrimSpace(text)
	switch {
	case len(text) == 0:
		return errEmpty
	case len(text) > maxOutput:
		return fmt.Errorf("it is longer than %d MiB: give the output of smartctl --json for one drive", maxOutput>>20)
	case bytes.HasPrefix(text, []byte("smartctl ")):
		if bytes.Contains(text, []byte("RECOGNIZED OPTION")) || bytes.HasPrefix(text, []byte("smartctl 6.")) {
			return errOld
		}
		return errors.New("it is the text output of smartctl: call smartctl with --json")
	case text[0] != '{':
		return fmt.Errorf("it is not smartctl's JSON: it begins with %.20q", text)
	}
	if tooDeep(text) {
		return fmt.Errorf("it is not smartctl's JSON: it is nested deeper than %d levels", maxDepth)
	}
	if err := json.Unmarshal(text, out); err != nil && !isTypeError(err) {
		return fmt.Errorf("it is incomplete or invalid JSON: %w", err)
	}
	return nil
}

// tooDeep reports whether objects and arrays are nested deeper than maxDepth.
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
			if depth++; depth > maxDepth {
				return true
			}
		case c == '}', c == ']':
			depth--
		}
	}
	return false
}
