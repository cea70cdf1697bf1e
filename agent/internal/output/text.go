package output

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"

	"github.com/stallspan/stallspan/internal/explain"
)

// terminal measures text as most terminals show it, whatever the locale.
var terminal = &runewidth.Condition{StrictEmojiNeutral: true}

// Columns is the width of a text on a terminal.
func Columns(s string) int { return terminal.StringWidth(s) }

// prefix is the longest beginning that fits into width columns, and at least one character.
func prefix(s string, width int) string {
	if head := terminal.Truncate(s, width, ""); head != "" {
		return head
	}
	for i := range s {
		if i > 0 {
			return s[:i]
		}
	}
	return s
}

// Fit makes a name exactly width columns wide. A long one loses its middle: names of models and files differ at their
// end.
func Fit(s string, width int) string {
	s = Printable(s)
	if Columns(s) > width {
		head := prefix(s, width/3)
		rest := s[len(head):]
		for rest != "" && Columns(head)+1+Columns(rest) > width {
			rest = rest[len(prefix(rest, 1)):]
		}
		s = head + "…" + rest
	}
	return terminal.FillRight(s, width)
}

// WrapText breaks a sentence into lines of at most width columns, between words. Only a word that is longer than a line
// is cut.
func WrapText(sentence string, width int) (lines []string) {
	line := ""
	for _, word := range wordsOf(sentence) {
		switch {
		case line == "":
			line = word
		case Columns(line)+1+Columns(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
		for Columns(line) > width { // a path
			head := prefix(line, width)
			lines, line = append(lines, head), line[len(head):]
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// unit is one behind a number, with what ends a sentence or a bracket.
var unit = regexp.MustCompile(`^(%|[um]?s|min|h|[KMGT]?i?B(/s)?)[.,;:)]*$`)

// wordsOf are the words of a sentence. A number stays with its unit.
func wordsOf(sentence string) (words []string) {
	for _, word := range strings.Fields(sentence) {
		last := len(words) - 1
		if last >= 0 && unit.MatchString(word) && unicode.IsDigit(rune(words[last][len(words[last])-1])) {
			words[last] += " " + word
			continue
		}
		words = append(words, word)
	}
	return words
}

// Printable replaces what would move a terminal's cursor or change its colours: names come from other programs.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) {
			return r
		}
		return '?'
	}, s)
}

// FirstOf lists the first names, with the number of the others.
func FirstOf(names []string, limit int) string {
	if more := len(names) - limit; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:limit], ", "), more)
	}
	return strings.Join(names, ", ")
}

// Count is a number of things, such as "1 window".
func Count(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if strings.HasSuffix(thing, "s") {
		thing += "e"
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// SpeedText formats bytes per second.
func SpeedText(bytesPerSecond float64) string {
	return explain.Size(uint64(max(0, bytesPerSecond))) + "/s"
}

// CapacityText formats bytes as makers of disks do: in powers of 1,000.
func CapacityText(bytes *uint64) string {
	if bytes == nil {
		return "-"
	}
	value, unit := float64(*bytes)/1e9, "GB"
	if value >= 1000 {
		value, unit = value/1000, "TB"
	}
	return fmt.Sprintf("%.3g %s", value, unit)
}

// Grouped formats a whole number with commas.
func Grouped(v float64) string {
	text := fmt.Sprintf("%.0f", v)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
