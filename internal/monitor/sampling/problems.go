package sampling

import (
	"fmt"
	"maps"
	"slices"
	"sync"
)

// maxProblems bounds the list of problems.
const maxProblems = 64

// Problems collects the errors of all sources. The zero value is ready, and safe for concurrent use.
type Problems struct {
	mu   sync.Mutex        // guards the fields below
	last map[string]string // by source: most failures repeat the one before
	seen map[string]bool
	list []error

	failures map[string]Failure
}

// Failure is how often a source could not be read in full, and the newest error.
type Failure struct {
	Count uint64
	Last  error
}

// Note adds an error of a source. It does nothing if err is nil.
func (p *Problems) Note(source string, err error) {
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
	if id := source + "\x00" + text; !p.seen[id] && len(p.list) < maxProblems {
		p.seen[id] = true
		p.list = append(p.list, fmt.Errorf("%s: %w", source, err))
	}
}

// All returns each distinct problem once, in the order of their first occurrence.
func (p *Problems) All() []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.list)
}

// Failures returns the failures by source. The names are those of the sources: pressure, process, cpu, gpu, disk; and
// history, for a device that it had no room for.
func (p *Problems) Failures() map[string]Failure {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.failures)
}
