package monitor

import (
	"fmt"
	"maps"
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

	failures map[string]Failure
}

// Failure is how often a source could not be read in full, and why the last time.
type Failure struct {
	Count uint64
	Last  error
}

func (p *problems) note(source string, err error) {
	if err == nil {
		return
	}
	text := err.Error()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last, p.seen, p.failures = map[string]string{}, map[string]bool{}, map[string]Failure{}
	}
	p.failures[source] = Failure{p.failures[source].Count + 1, err}
	if p.last[source] == text {
		return
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

func (p *problems) counts() map[string]Failure {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.failures)
}
