package sample

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// maxProblems bounds the causes that one error names.
const maxProblems = 4

// Problems joins the errors of one reading into an error of one line. Without errors it allocates nothing.
type Problems struct {
	list []error
	more int
}

// Add adds err, unless it is nil or has the text of an earlier one.
func (p *Problems) Add(err error) {
	switch {
	case err == nil:
	case slices.ContainsFunc(p.list, func(known error) bool { return known.Error() == err.Error() }):
	case len(p.list) < maxProblems:
		p.list = append(p.list, err)
	default:
		p.more++
	}
}

// AddAll adds the errors of other.
func (p *Problems) AddAll(other *Problems) {
	for _, err := range other.list {
		p.Add(err)
	}
	p.more += other.more
}

// Reset removes all errors and keeps the memory.
func (p *Problems) Reset() { p.list, p.more = p.list[:0], 0 }

// Err returns nil without errors. Otherwise errors.Is finds each cause.
func (p *Problems) Err() error {
	if len(p.list) == 0 {
		return nil
	}
	texts := make([]string, len(p.list))
	for i, err := range p.list {
		texts[i] = err.Error()
	}
	line := strings.Join(texts, "; ")
	if p.more > 0 {
		line = fmt.Sprintf("%s; and %d more like these", line, p.more)
	}
	return joined{line, errors.Join(p.list...)}
}

const (
	reportEvery = time.Minute // the same error
	maxReported = 64          // errors that are remembered
)

// Reports are the problems of a stream. Each is reported once a minute. The zero value is ready.
type Reports struct {
	last    map[string]time.Duration
	pending Problems
}

// Add has Take return err, unless an error with the same key was added less than a minute before now, a Stamp.Mono.
func (r *Reports) Add(key string, err error, now time.Duration) bool {
	if at, ok := r.last[key]; ok && now-at < reportEvery {
		return false
	}
	if r.last == nil || len(r.last) >= maxReported {
		r.last = map[string]time.Duration{}
	}
	r.last[key] = now
	r.pending.Add(err)
	return true
}

// Take returns the errors that were added since the last call.
func (r *Reports) Take() error {
	err := r.pending.Err()
	r.pending.Reset()
	return err
}

// joined has a text of one line and unwraps to all causes.
type joined struct {
	line   string
	causes error
}

func (j joined) Error() string { return j.line }
func (j joined) Unwrap() error { return j.causes }
