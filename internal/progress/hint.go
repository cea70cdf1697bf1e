package progress

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Hint is for a user in whose program's output no epoch was found.
type Hint struct {
	Lines   int    // of output
	Example string // a line with a number that rises from line to line, or a bar that begins again; "" if there was none
	Pattern string // finds it in all lines that were seen, as the number of an epoch
	Ends    bool   // these lines have results, so they end an epoch
	Bar     bool   // each of these bars is an epoch
}

// Bounds of the search for a number that rises.
const (
	hintLines    = 1000 // of output that are looked at
	hintLine     = 256  // bytes of each
	hintCounters = 8
)

var blanks = regexp.MustCompile(" +")

// hints looks for counters in a program's output: a word with a number, as "iter 100" or `"step": 100`.
type hints struct {
	lines    int
	counters []seenCounter
	bars     []seenBar
}

// seenBar is all bars that count to the same number: 0/20 to 20/20, and again.
type seenBar struct {
	of      float64
	at      float64 // of the latest line
	begins  int     // lines with 0/20
	redrawn bool    // two of them for one bar: no pattern shows a begin
	first   string  // line
	literal string  // 0/20
}

type seenCounter struct {
	literal string // the first
	pattern string // for any number of blanks
	rises   int
	ends    bool
	seen    []string // the lines with it
	numbers []int
}

// line looks for the first counter of a line.
func (h *hints) line(x *text) {
	h.bar(x)
	if h.lines++; h.lines > hintLines {
		return
	}
	for i := range x.tokens {
		if x.tokens[i].to > hintLine {
			return
		}
		if gap := x.between(i + 1); x.is(i, epochWord|counterWord) && x.integer(i+1) && x.follows(i+1, gap) &&
			!negative(gap) {
			h.add(x, i)
			return
		}
	}
}

// bar looks for the place of a bar that has nothing to do with an evaluation, a load or a checkpoint.
func (h *hints) bar(x *text) {
	if slices.ContainsFunc(x.tokens, func(t token) bool { return t.class&(evalWord|loadingWord|loadWord|saveWord) != 0 }) {
		return
	}
	for i := range x.tokens {
		of, next, ok := x.pair(i)
		if !ok || of < 2 || x.tokens[i].value > of || !x.inBar(x.tokens[i].from) {
			continue
		}
		at := x.tokens[i].value
		k := slices.IndexFunc(h.bars, func(b seenBar) bool { return b.of == of })
		switch {
		case k >= 0 && at == 0 && h.bars[k].at == 0:
			h.bars[k].redrawn = true
		case k >= 0 && at == 0:
			h.bars[k].begins++
		case k < 0 && at == 0 && len(h.bars) < hintCounters:
			h.bars = append(h.bars, seenBar{of: of, begins: 1, first: strings.Clone(string(x.line[:min(len(x.line),
				hintLine)])), literal: string(x.line[x.tokens[i].from:x.tokens[next-1].to])})
			k = len(h.bars) - 1
		}
		if k >= 0 {
			h.bars[k].at = at
		}
		return
	}
}

func (h *hints) add(x *text, i int) {
	from := x.tokens[i].from
	if from > 0 && (x.line[from-1] == '"' || x.line[from-1] == '\'') {
		from--
	}
	literal := string(x.line[from:x.tokens[i+1].from])
	pattern := blanks.ReplaceAllString(regexp.QuoteMeta(literal), " +")
	number := int(x.tokens[i+1].value)
	line := strings.Clone(string(x.line[:min(len(x.line), hintLine)]))
	for k := range h.counters {
		if c := &h.counters[k]; c.pattern == pattern {
			if number > c.numbers[len(c.numbers)-1] {
				c.rises++
			}
			c.seen, c.numbers = append(c.seen, line), append(c.numbers, number)
			return
		}
	}
	if len(h.counters) < hintCounters {
		h.counters = append(h.counters, seenCounter{literal: literal, pattern: pattern, seen: []string{line},
			numbers: []int{number}, ends: x.hasResults(i + 2)})
	}
}

// hasResults reports whether a measured value is at a token or behind it.
func (x *text) hasResults(i int) bool {
	return slices.ContainsFunc(x.tokens[min(i, len(x.tokens)):], func(t token) bool { return t.form == decimal })
}

// hint returns the counter that rose in the smallest number of lines, but rose: of epochs and steps, epochs. Its
// pattern was tried on every line that had it. A bar rises where it begins again.
func (h *hints) hint() Hint {
	hint := Hint{Lines: h.lines}
	least := 0
	for _, c := range h.counters {
		if c.rises == 0 || least != 0 && c.rises >= least {
			continue
		}
		for _, before := range []string{regexp.QuoteMeta(c.literal), c.pattern, `\b` + c.pattern} {
			if pattern := before + `(\d+)`; c.finds(pattern) {
				least, hint.Example, hint.Pattern, hint.Ends = c.rises, strings.TrimSpace(c.seen[0]), pattern, c.ends
				break
			}
		}
	}
	for _, b := range h.bars {
		if again := b.begins - 1; again > 0 && !b.redrawn && (least == 0 || again < least) {
			least = again
			hint.Example, hint.Pattern = strings.TrimSpace(b.first), `\b`+regexp.QuoteMeta(b.literal)+`\b`
			hint.Ends, hint.Bar = false, true
		}
	}
	return hint
}

// finds reports whether a pattern finds the number in all lines.
func (c *seenCounter) finds(pattern string) bool {
	re, err := regexp.Compile(pattern)
	if err != nil {
		return false
	}
	for i, line := range c.seen {
		found := re.FindStringSubmatch(line)
		if found == nil {
			return false
		}
		if number, err := strconv.Atoi(found[1]); err != nil || number != c.numbers[i] {
			return false
		}
	}
	return true
}
