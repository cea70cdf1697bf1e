package agent

import (
	"strings"
	"unicode"
)

// wide are the characters that take two columns of a terminal: the blocks that Unicode's East Asian Width (UAX #11)
// calls wide, roughly, and emoji.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1100, Hi: 0x115f, Stride: 1}, // Hangul letters
		{Lo: 0x2e80, Hi: 0xa4cf, Stride: 1}, // CJK and Yi
		{Lo: 0xac00, Hi: 0xd7a3, Stride: 1}, // Hangul syllables
		{Lo: 0xf900, Hi: 0xfaff, Stride: 1}, // CJK compatibility
		{Lo: 0xfe30, Hi: 0xfe6f, Stride: 1},
		{Lo: 0xff00, Hi: 0xff60, Stride: 1}, // full-width forms
		{Lo: 0xffe0, Hi: 0xffe6, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x1f300, Hi: 0x1faff, Stride: 1}, // emoji
		{Lo: 0x20000, Hi: 0x3fffd, Stride: 1}, // CJK
	},
}

func columnsOf(r rune) int {
	if unicode.Is(wide, r) {
		return 2
	}
	return 1
}

// columns is how wide a text is on a terminal. Marks that stand on the letter before count too: such a text is a little
// narrower than it says.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += columnsOf(r)
	}
	return n
}

// prefix is the longest beginning that fits into width columns, and at least one character.
func prefix(s string, width int) string {
	n := 0
	for i, r := range s {
		if n += columnsOf(r); n > width && i > 0 {
			return s[:i]
		}
	}
	return s
}

// fit makes a name exactly width columns wide. One that is too long loses its middle: names of models and files differ
// at their end.
func fit(s string, width int) string {
	if columns(s) > width {
		head := prefix(s, width/3)
		rest := s[len(head):]
		for rest != "" && columns(head)+1+columns(rest) > width {
			rest = rest[len(prefix(rest, 1)):]
		}
		s = head + "~" + rest
	}
	return s + strings.Repeat(" ", max(0, width-columns(s)))
}

// printable takes out what would move a terminal's cursor or change its colours: names come from other programs.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) {
			return r
		}
		return '?'
	}, s)
}
