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
	Example string // a line with a number that rises from line to line; "" if there was none
	Pattern string // finds it in all lines that were seen, as the number of an epoch
	Ends    bool   // these lines have results, so they end an epoch
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
// pattern was tried on every line that had it.
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
