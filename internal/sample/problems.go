package sample

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// mostProblems bounds how many are told in one error.
const mostProblems = 4

// Problems gathers what went wrong in one reading into an error of one line. It costs nothing while all is well.
type Problems struct {
	list []error
	more int
}

// Add keeps err, unless it is nil or the same words are there already.
func (p *Problems) Add(err error) {
	switch {
	case err == nil:
	case slices.ContainsFunc(p.list, func(known error) bool { return known.Error() == err.Error() }):
	case len(p.list) < mostProblems:
		p.list = append(p.list, err)
	default:
		p.more++
	}
}

// AddAll keeps what another has gathered.
func (p *Problems) AddAll(other *Problems) {
	for _, err := range other.list {
		p.Add(err)
	}
	p.more += other.more
}

// Reset forgets everything and keeps the memory.
func (p *Problems) Reset() { p.list, p.more = p.list[:0], 0 }

// Err is nil when nothing went wrong. It answers errors.Is for each of its causes.
func (p *Problems) Err() error {
	if len(p.list) == 0 {
		return nil
	}
	words := make([]string, len(p.list))
	for i, err := range p.list {
		words[i] = err.Error()
	}
	line := strings.Join(words, "; ")
	if p.more > 0 {
		line = fmt.Sprintf("%s; and %d more like these", line, p.more)
	}
	return joined{line, errors.Join(p.list...)}
}

// joined has one line of words and still answers errors.Is for each of its causes.
type joined struct {
	line   string
	causes error
}

func (j joined) Error() string { return j.line }
func (j joined) Unwrap() error { return j.causes }
