package sampling

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// maxProblems bounds the problems that are kept of one source: those that happened last.
const maxProblems = 8

// Problems collects the errors of all sources. The zero value is ready, and safe for concurrent use.
type Problems struct {
	mu      sync.Mutex // guards the fields below
	sources map[string]*problems
	noted   uint64 // number of notes that were not repetitions
}

// problems are those of one source.
type problems struct {
	failure Failure
	last    string // most failures repeat the one before
	list    []problem
	dropped int
}

type problem struct {
	text          string
	err           error
	first, newest uint64 // values of Problems.noted
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
	if p.sources == nil {
		p.sources = map[string]*problems{}
	}
	of := p.sources[source]
	if of == nil {
		of = &problems{}
		p.sources[source] = of
	}
	of.failure = Failure{of.failure.Count + 1, err}
	if of.last == text {
		return
	}
	of.last = text
	p.noted++
	if known := slices.IndexFunc(of.list, func(q problem) bool { return q.text == text }); known >= 0 {
		of.list[known].newest = p.noted
		return
	}
	if len(of.list) >= maxProblems {
		oldest := slices.MinFunc(of.list, func(a, b problem) int { return cmp.Compare(a.newest, b.newest) }).first
		of.list = slices.DeleteFunc(of.list, func(q problem) bool { return q.first == oldest })
		of.dropped++
	}
	of.list = append(of.list, problem{text, fmt.Errorf("%s: %w", source, err), p.noted, p.noted})
}

// All returns each distinct problem once, in the order of their first occurrence, and then how many others each source
// had before.
func (p *Problems) All() []error {
	all, _ := p.Since(0)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, source := range slices.Sorted(maps.Keys(p.sources)) {
		if n := p.sources[source].dropped; n > 0 {
			all = append(all, fmt.Errorf("%s: %d other problems before these", source, n))
		}
	}
	return all
}

// Since returns the problems that are new since an earlier call, which has returned next; 0 for all.
func (p *Problems) Since(earlier uint64) (list []error, next uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []problem
	for _, of := range p.sources {
		for _, q := range of.list {
			if q.first > earlier {
				found = append(found, q)
			}
		}
	}
	slices.SortFunc(found, func(a, b problem) int { return cmp.Compare(a.first, b.first) })
	for _, q := range found {
		list = append(list, q.err)
	}
	return list, p.noted
}

// Failures returns the failures by source. The names are those of the sources: pressure, process, cpu, gpu, disk; and
// history, for devices that it had no room for.
func (p *Problems) Failures() map[string]Failure {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := make(map[string]Failure, len(p.sources))
	for source, of := range p.sources {
		all[source] = of.failure
	}
	return all
}
