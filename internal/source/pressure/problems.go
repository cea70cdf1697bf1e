package pressure

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// mostProblems bounds how many are told in one error.
const mostProblems = 4

// problems gathers what went wrong in one reading into an error of one line. It costs nothing while all is well.
type problems struct {
	list []error
	more int
}

// add keeps err, unless the same words are there already.
func (p *problems) add(err error) {
	switch {
	case slices.ContainsFunc(p.list, func(known error) bool { return known.Error() == err.Error() }):
	case len(p.list) < mostProblems:
		p.list = append(p.list, err)
	default:
		p.more++
	}
}

func (p *problems) err() error {
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
