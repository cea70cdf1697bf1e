package agent

import (
	"strings"
	"unicode"

	"github.com/mattn/go-runewidth"
)

// terminal measures text as most terminals show it, whatever the locale.
var terminal = &runewidth.Condition{StrictEmojiNeutral: true}

// columns is the width of a text on a terminal.
func columns(s string) int { return terminal.StringWidth(s) }

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

// fit makes a name exactly width columns wide. A long one loses its middle: names of models and files differ at their
// end.
func fit(s string, width int) string {
	s = printable(s)
	if columns(s) > width {
		head := prefix(s, width/3)
		rest := s[len(head):]
		for rest != "" && columns(head)+1+columns(rest) > width {
			rest = rest[len(prefix(rest, 1)):]
		}
		s = head + "~" + rest
	}
	return terminal.FillRight(s, width)
}

// wrapText breaks a sentence into lines of at most width columns, between words. Only a word that is longer than a line
// is cut.
func wrapText(sentence string, width int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(sentence) {
		switch {
		case line == "":
			line = word
		case columns(line)+1+columns(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
		for columns(line) > width { // a path
			head := prefix(line, width)
			lines, line = append(lines, head), line[len(head):]
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// printable replaces what would move a terminal's cursor or change its colours: names come from other programs.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) {
			return r
		}
		return '?'
	}, s)
}
