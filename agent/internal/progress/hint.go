package progress

import (
	"bytes"
	"regexp"
	"strconv"
)

// Hint is for a user whose program printed no line that a pattern matches.
type Hint struct {
	Lines   int    // of output
	Example string // a line with a number that rises from line to line; "" if there was none
	Pattern string // reads it as an epoch
}

// Bounds of the search for a number that rises.
const (
	hintLines    = 1000 // with such a word
	hintLine     = 256  // bytes of each
	hintCounters = 8
	stepRises    = 2 // after which a counter of steps is known
)

// counter is a word with a number, as "iter 100" or `"step": 100`, and then maybe the last number. The word need not be
// one that is known.
var counter = regexp.MustCompile(`(?i)(?:^|[^a-z0-9_"'])((["']?(?:global_?)?` +
	`(epoch|iter|iteration|itr|it|step|batch|round|cycle)["']?)[ =:#\[(]{0,16})([0-9]{1,9})(?:\.?$|[^0-9.])`)

// listed is the number of an item of a list, as "[1/10] loss 0.3".
var listed = regexp.MustCompile(`^\s*(\[)(\s*)()([0-9]{1,9})\s*/\s*[0-9]{1,9}\]`)

// counterWords are parts of words: a line that counter or listed match has one.
var counterWords = [][]byte{[]byte("it"), []byte("It"), []byte("IT"), []byte("step"), []byte("Step"), []byte("STEP"),
	[]byte("poch"), []byte("POCH"), []byte("atch"), []byte("ound"), []byte("ycle"), []byte("/")}

// hints looks for counters in a program's output, until one of steps has risen twice.
type hints struct {
	lines    int
	examined int
	counters []seenCounter
}

type seenCounter struct {
	word    string // with its quotes, as in the output
	prefix  string
	steps   bool // not epochs
	most    int
	rises   int
	example string
}

// line returns the counter of steps that this line shows to be one; nil for none.
func (h *hints) line(text []byte) *seenCounter {
	text = text[:min(len(text), hintLine)]
	if h.examined >= hintLines || !mayCount(text) {
		return nil
	}
	h.examined++
	loc := counter.FindSubmatchIndex(text)
	if loc == nil {
		loc = listed.FindSubmatchIndex(text)
	}
	if loc == nil {
		return nil
	}
	number, err := strconv.Atoi(string(text[loc[8]:loc[9]]))
	if err != nil {
		return nil
	}
	c := h.of(text, loc)
	if c == nil {
		return nil
	}
	if number > c.most {
		c.most = number
		c.rises++
	}
	if c.steps && c.rises > stepRises {
		return c
	}
	return nil
}

// of returns the counter of a match; nil if there are too many.
func (h *hints) of(text []byte, loc []int) *seenCounter {
	prefix, word := text[loc[2]:loc[3]], text[loc[4]:loc[5]]
	if loc[6] == loc[7] {
		word = nil
	}
	for i := range h.counters {
		if c := &h.counters[i]; c.word == string(word) {
			return c
		}
	}
	if len(h.counters) == hintCounters {
		return nil
	}
	h.counters = append(h.counters, seenCounter{word: string(word), prefix: string(prefix), most: -1,
		steps: !bytes.EqualFold(text[loc[6]:loc[7]], []byte("epoch")), example: string(bytes.TrimSpace(text))})
	return &h.counters[len(h.counters)-1]
}

func mayCount(text []byte) bool {
	for _, word := range counterWords {
		if bytes.Contains(text, word) {
			return true
		}
	}
	return false
}

// hint returns the counter that rose in the smallest number of lines, but rose: of epochs and steps, epochs.
func (h *hints) hint() Hint {
	hint := Hint{Lines: h.lines}
	least := 1
	for _, c := range h.counters {
		if c.rises > 1 && (least == 1 || c.rises < least) {
			least = c.rises
			hint.Example, hint.Pattern = c.example, regexp.QuoteMeta(c.prefix)+`(\d+)`
		}
	}
	return hint
}

// number returns the counter's number in a line.
func (c *seenCounter) number(line []byte) (n int, ok bool) {
	if c.word == "" {
		loc := listed.FindSubmatchIndex(line)
		if loc == nil {
			return 0, false
		}
		return integer(line[loc[8]:loc[9]])
	}
	for from := 0; ; {
		i := bytes.Index(line[from:], []byte(c.word))
		if i < 0 {
			return 0, false
		}
		at := from + i
		from = at + len(c.word)
		if at > 0 && inWord(line[at-1]) {
			continue
		}
		rest := bytes.TrimLeft(line[from:min(len(line), from+hintLine)], " =:#[(")
		digits := 0
		for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
			digits++
		}
		after := rest[digits:]
		if fraction := len(after) > 1 && after[0] == '.'; !fraction {
			if n, ok := integer(rest[:digits]); ok {
				return n, true
			}
		}
	}
}

func inWord(c byte) bool {
	return c == '_' || c == '"' || c == '\'' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}
