package main

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// rules are the lines of words.txt.
type rules struct {
	words       []rule
	identifiers []rule // these hold for identifiers only, on top of words
	allowed     []string
}

// rule refuses one word or phrase.
type rule struct {
	word        string
	replacement string
	pattern     *regexp.Regexp
}

// parseRules reads the format that the head of words.txt describes.
func parseRules(text string) (rules, error) {
	var all rules
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if phrase, ok := strings.CutPrefix(line, "allow:"); ok {
			all.allowed = append(all.allowed, strings.ToLower(strings.TrimSpace(phrase)))
			continue
		}
		word, replacement, ok := strings.Cut(line, " = ")
		if !ok {
			return rules{}, fmt.Errorf("line %d: want \"word = replacement\", got %q", i+1, line)
		}
		identifier := false
		if rest, ok := strings.CutPrefix(word, "ident:"); ok {
			word, identifier = strings.TrimSpace(rest), true
		}
		r := rule{word: word, replacement: replacement, pattern: pattern(word)}
		if identifier {
			all.identifiers = append(all.identifiers, r)
		} else {
			all.words = append(all.words, r)
		}
	}
	return all, nil
}

// pattern matches a whole word or phrase in lower-case text; "most*" matches "most" at the start, with a word after it.
func pattern(word string) *regexp.Regexp {
	if first, ok := strings.CutSuffix(word, "*"); ok {
		return regexp.MustCompile(`^` + regexp.QuoteMeta(first) + ` `)
	}
	return regexp.MustCompile(`\b` + strings.ReplaceAll(regexp.QuoteMeta(word), " ", `\s+`) + `\b`)
}

// inText returns what refuses a text, each rule once.
func (r rules) inText(text string) []rule {
	text = strings.ToLower(text)
	for _, phrase := range r.allowed {
		text = strings.ReplaceAll(text, phrase, " ")
	}
	return matching(r.words, text)
}

// inIdentifier returns what refuses an identifier. Words are its parts: maxBytes has "max" and "bytes".
func (r rules) inIdentifier(name string) []rule {
	text := split(name)
	return append(matching(r.words, text), matching(r.identifiers, text)...)
}

func matching(rules []rule, text string) []rule {
	var found []rule
	for _, r := range rules {
		if r.pattern.MatchString(text) {
			found = append(found, r)
		}
	}
	return found
}

// split returns the words of an identifier in lower case.
func split(name string) string {
	var out strings.Builder
	runes := []rune(name)
	for i, c := range runes {
		upper := unicode.IsUpper(c)
		if i > 0 && upper && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			out.WriteByte(' ')
		}
		if c == '_' {
			c = ' '
		}
		out.WriteRune(unicode.ToLower(c))
	}
	return out.String()
}
