package monitor

import (
	"fmt"
	"sync"
)

// mostProblems bounds what is remembered; a machine with more different problems than this has one large one.
const mostProblems = 64

// problems remembers each problem once, in the order they were met.
type problems struct {
	mu   sync.Mutex
	last map[string]string // by source: most ticks fail as the one before did
	seen map[string]bool
	list []error
}

func (p *problems) note(source string, err error) {
	if err == nil {
		return
	}
	text := err.Error()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last[source] == text {
		return
	}
	if p.last == nil {
		p.last, p.seen = map[string]string{}, map[string]bool{}
	}
	p.last[source] = text
	if id := source + "\x00" + text; !p.seen[id] && len(p.list) < mostProblems {
		p.seen[id] = true
		p.list = append(p.list, fmt.Errorf("%s: %w", source, err))
	}
}

func (p *problems) all() []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]error(nil), p.list...)
}
