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
	hintLines    = 1000 // of output that are looked at
	hintLine     = 256  // bytes of each
	hintCounters = 8
)

// counter is a word with a number, as "iter 100" or `"step": 100`. The word need not be one that is known.
var counter = regexp.MustCompile(`(?i)(?:^|[^a-z0-9_"'])(["']?(?:global_?)?` +
	`(?:epoch|iter|iteration|itr|it|step|batch|round|cycle)["']?[ =:#\[(]{0,4})([0-9]{1,9})(?:[^0-9.]|$)`)

// hints looks for counters in a program's output.
type hints struct {
	lines    int
	counters []seenCounter
}

type seenCounter struct {
	prefix  string
	last    int
	rises   int
	example string
}

func (h *hints) line(text []byte) {
	if h.lines++; h.lines > hintLines {
		return
	}
	text = text[:min(len(text), hintLine)]
	loc := counter.FindSubmatchIndex(text)
	if loc == nil {
		return
	}
	prefix := string(text[loc[2]:loc[3]])
	number, err := strconv.Atoi(string(text[loc[4]:loc[5]]))
	if err != nil {
		return
	}
	for i := range h.counters {
		if c := &h.counters[i]; c.prefix == prefix {
			if number > c.last {
				c.rises++
			}
			c.last = number
			return
		}
	}
	if len(h.counters) < hintCounters {
		h.counters = append(h.counters, seenCounter{prefix, number, 0, string(bytes.TrimSpace(text))})
	}
}

// hint returns the counter that rose in the smallest number of lines, but rose: of epochs and steps, epochs.
func (h *hints) hint() Hint {
	hint := Hint{Lines: h.lines}
	least := 0
	for _, c := range h.counters {
		if c.rises > 0 && (least == 0 || c.rises < least) {
			least = c.rises
			hint.Example, hint.Pattern = c.example, regexp.QuoteMeta(c.prefix)+`(\d+)`
		}
	}
	return hint
}
