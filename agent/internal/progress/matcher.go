package progress

import (
	"bytes"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// matcher is a compiled pattern. The indexes are those of its named groups, -1 where it has none.
type matcher struct {
	pattern
	find    []byte // the literal
	regexp  *regexp.Regexp
	epoch   int
	total   int
	step    int
	steps   int
	model   int
	counted bool // matches are counted: the pattern has no group for the epoch's number
}

func newMatcher(p pattern, re *regexp.Regexp) *matcher {
	return &matcher{
		pattern: p, find: []byte(p.literal), regexp: re,
		epoch: re.SubexpIndex("epoch"), total: re.SubexpIndex("total"),
		step: re.SubexpIndex("step"), steps: re.SubexpIndex("steps"), model: re.SubexpIndex("model"),
	}
}

// match is FindSubmatchIndex behind the pattern's literal. The text is the part of the line that loc counts from.
func (m *matcher) match(line []byte, words []int) (text []byte, loc []int) {
	if m.literal != epochWord {
		if !bytes.Contains(line, m.find) {
			return nil, nil
		}
		return line, m.regexp.FindSubmatchIndex(line)
	}
	for _, at := range words {
		if loc := m.regexp.FindSubmatchIndex(line[at:]); loc != nil && leads().Match(line[:at]) {
			return line[at:], loc
		}
	}
	return nil, nil
}

// formats are patterns of which a line can match one.
type formats struct {
	matchers []*matcher
	gates    [][]byte // nil: no prefilter
}

// builtin compiles the table once for all readers, when the first asks: about a millisecond.
var builtin = sync.OnceValue(func() [2]formats {
	compile := func(patterns []pattern, gates []string) (f formats) {
		for _, p := range patterns {
			expr := p.expr
			if p.literal == epochWord {
				expr = "^" + expr
			}
			f.matchers = append(f.matchers, newMatcher(p, regexp.MustCompile(expr)))
		}
		for _, gate := range gates {
			f.gates = append(f.gates, []byte(gate))
		}
		return f
	}
	return [2]formats{compile(epochPatterns, epochGates), compile(loadPatterns, loadGates)}
})

var leads = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(lead) })

// of gives the patterns of one framework alone, with their own literals as the prefilter.
func (f *formats) of(framework string) formats {
	var own formats
	for _, m := range f.matchers {
		if m.framework != framework {
			continue
		}
		own.matchers = append(own.matchers, m)
		if m.literal == epochWord {
			own.gates = append(own.gates, []byte("poch"), []byte("POCH"))
		} else {
			own.gates = append(own.gates, m.find)
		}
	}
	return own
}

// match finds the first pattern that the line matches. loc counts from the start of text, as
// regexp.FindSubmatchIndex gives it.
func (f *formats) match(line []byte) (m *matcher, text []byte, loc []int) {
	if !f.pass(line) {
		return nil, nil, nil
	}
	var places [maxWords]int
	words := numberedWords(places[:0], line)
	for _, m := range f.matchers {
		if text, loc := m.match(line, words); loc != nil {
			return m, text, loc
		}
	}
	return nil, nil, nil
}

func (f *formats) pass(line []byte) bool {
	for _, gate := range f.gates {
		if bytes.Contains(line, gate) {
			return true
		}
	}
	return f.gates == nil
}

const (
	maxWords     = 4   // of a line are looked at
	maxLead      = 256 // bytes before the word
	maxSeparator = 4   // bytes between the word and its number
)

// numberedWords appends the offsets of the words "epoch" that a number follows. Without such a word, none of the costly
// expressions has to be tried.
func numberedWords(places []int, line []byte) []int {
	for at := 0; len(places) < maxWords; {
		i := bytes.Index(line[at:], []byte("poch"))
		if upper := bytes.Index(line[at:], []byte("POCH")); upper >= 0 && (i < 0 || upper < i) {
			i = upper
		}
		word := at + i - 1
		if i < 0 || word > maxLead {
			break
		}
		at += i + len("poch")
		if word < 0 || line[word]|0x20 != 'e' {
			continue
		}
		next := bytes.TrimLeft(line[at:min(at+maxSeparator+1, len(line))], " \t:=#[(")
		if len(next) > 0 && next[0] >= '0' && next[0] <= '9' {
			places = append(places, word)
		}
	}
	return places
}

// group is the text of a group, nil when the pattern does not have it or the match left it out.
func group(line []byte, loc []int, i int) []byte {
	if i < 0 || loc[2*i] < 0 {
		return nil
	}
	return line[loc[2*i]:loc[2*i+1]]
}

// integer reads a count as programs print it. Anything out of range is no count at all.
func integer(text []byte) (n int, ok bool) {
	if len(text) == 0 || len(text) > 10 {
		return 0, false
	}
	n, err := strconv.Atoi(string(text))
	return n, err == nil && n >= 0 && n <= math.MaxInt32
}

// amount reads a number of epochs with a fraction.
func amount(text []byte) (v float64, ok bool) {
	if len(text) == 0 || len(text) > 32 {
		return 0, false
	}
	v, err := strconv.ParseFloat(string(text), 64)
	return v, err == nil && v >= 0 && v <= math.MaxInt32
}

// part is step/steps within 0 and 1; 0 when the line does not say.
func (m *matcher) part(line []byte, loc []int) float64 {
	step, ok := integer(group(line, loc, m.step))
	steps, known := integer(group(line, loc, m.steps))
	if !ok || !known || steps == 0 {
		return 0
	}
	return min(float64(step)/float64(steps), 1)
}

const maxModel = 256

// name is the model's name, fit to be an attribute of a span.
func (m *matcher) name(line []byte, loc []int) string {
	text := group(line, loc, m.model)
	return strings.ToValidUTF8(string(text[:min(len(text), maxModel)]), "")
}
