package progress

import (
	"bytes"
	"math"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// matcher is a compiled pattern. The indexes are those of its named groups, -1 for a missing group.
type matcher struct {
	pattern
	find    []byte // the literal
	regexp  *regexp.Regexp
	epoch   int
	total   int
	step    int
	steps   int
	model   int
	counted bool // the pattern has no group for the epoch's number, so matches are counted
}

func newMatcher(p pattern, re *regexp.Regexp) *matcher {
	return &matcher{
		pattern: p, find: []byte(p.literal), regexp: re,
		epoch: re.SubexpIndex("epoch"), total: re.SubexpIndex("total"),
		step: re.SubexpIndex("step"), steps: re.SubexpIndex("steps"), model: re.SubexpIndex("model"),
	}
}

// match is FindSubmatchIndex after a search for the pattern's literal. text is the part of the line that loc refers to.
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

// formats are patterns. A line matches at most one of them.
type formats struct {
	matchers []*matcher
	gates    [][]byte // nil: no prefilter
}

// builtin compiles the table once for all readers, at the first use: about a millisecond.
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

// of selects the patterns of one framework, with their own literals as the prefilter.
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

// match finds the first pattern that matches the line. loc is as in regexp.FindSubmatchIndex, for text.
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
	maxWords     = 4   // per line
	maxLead      = 256 // bytes before the word
	maxSeparator = 4   // bytes between the word and its number
)

// numberedWords appends the offsets of the words "epoch" before a number. Without such a word, no costly expression is
// tried.
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

// group is the text of a group, nil if the pattern or the match does not have it.
func group(line []byte, loc []int, i int) []byte {
	if i < 0 || loc[2*i] < 0 {
		return nil
	}
	return line[loc[2*i]:loc[2*i+1]]
}

// integer parses a count. A number out of range is not a count.
func integer(text []byte) (n int, ok bool) {
	if len(text) == 0 || len(text) > 10 {
		return 0, false
	}
	n, err := strconv.Atoi(string(text))
	return n, err == nil && n >= 0 && n <= math.MaxInt32
}

// amount parses a number of epochs with a fraction.
func amount(text []byte) (v float64, ok bool) {
	if len(text) == 0 || len(text) > 32 {
		return 0, false
	}
	v, err := strconv.ParseFloat(string(text), 64)
	return v, err == nil && v >= 0 && v <= math.MaxInt32
}

// place is step/steps, or step alone.
func (m *matcher) place(line []byte, loc []int) place {
	step, ok := integer(group(line, loc, m.step))
	steps, known := integer(group(line, loc, m.steps))
	if !ok || !known || steps == 0 {
		return place{known: ok, at: float64(step)}
	}
	return place{known: true, fraction: true, at: min(float64(step)/float64(steps), 1)}
}

const maxModel = 256

// name is the model's name, valid as an attribute of a span.
func (m *matcher) name(line []byte, loc []int) string {
	text := group(line, loc, m.model)
	return strings.ToValidUTF8(string(text[:min(len(text), maxModel)]), "")
}
