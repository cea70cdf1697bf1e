package process

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
	list []string
	more int
}

// add keeps the words, unless they are there already.
func (p *problems) add(words string) {
	switch {
	case slices.Contains(p.list, words):
	case len(p.list) < mostProblems:
		p.list = append(p.list, words)
	default:
		p.more++
	}
}

func (p *problems) reset() { p.list, p.more = p.list[:0], 0 }

func (p *problems) addAll(other *problems) {
	for _, words := range other.list {
		p.add(words)
	}
	p.more += other.more
}

func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	line := strings.Join(p.list, "; ")
	if p.more > 0 {
		line = fmt.Sprintf("%s; and %d more like these", line, p.more)
	}
	return errors.New(line)
}
