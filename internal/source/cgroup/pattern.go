package cgroup

import (
	"errors"
	"fmt"
	"path"
	"strings"
)

// Bounds of patterns.
const (
	maxPatterns    = 32
	maxPatternText = 1024 // bytes
	maxParts       = 32   // levels of a pattern
)

// Patterns say which cgroups are meant, by their paths as in /proc/PID/cgroup. Each level is a pattern of path.Match.
// The level ** stands for any number of levels. At the end it stands for the cgroups below that have processes of their
// own, as those of containers have, and those of pods have not.
type Patterns struct{ all []pattern }

// pattern is one of them.
type pattern struct {
	parts []string
	deep  bool // it ended with **
}

// ParsePatterns parses patterns. An error begins with the number of the pattern, from 0, in brackets.
func ParsePatterns(texts []string) (*Patterns, error) {
	if len(texts) > maxPatterns {
		return nil, fmt.Errorf("[%d]: these are more than %d patterns: join some of them", maxPatterns, maxPatterns)
	}
	all := new(Patterns)
	for i, text := range texts {
		one, err := parsePattern(text)
		if err != nil {
			return nil, fmt.Errorf("[%d]: %.80q is no pattern of cgroups, like /system.slice/train*.service: %w", i, text, err)
		}
		all.all = append(all.all, one)
	}
	return all, nil
}

func parsePattern(text string) (p pattern, err error) {
	p.parts = strings.Split(strings.TrimSuffix(strings.TrimPrefix(text, "/"), "/"), "/")
	if len(text) > maxPatternText || len(p.parts) > maxParts {
		return p, fmt.Errorf("it has more than %d bytes or %d levels", maxPatternText, maxParts)
	}
	for _, part := range p.parts {
		switch {
		case part == "":
			return p, errors.New("a level is empty")
		case part == "." || part == "..":
			return p, errors.New("it is relative: begin at the top of the tree")
		case part != "**" && strings.Contains(part, "**"):
			return p, errors.New("** must be a level of its own")
		}
		if _, err := path.Match(part, ""); err != nil {
			return p, errors.New("a level cannot be parsed: check its brackets, and the sign after a backslash")
		}
	}
	for len(p.parts) > 0 && p.parts[len(p.parts)-1] == "**" {
		p.parts, p.deep = p.parts[:len(p.parts)-1], true
	}
	return p, nil
}

// level is where patterns are at one cgroup: for each, a set of how many of its parts the path so far may have used up.
type level []uint64

// top is the level of the root cgroup.
func (p *Patterns) top() level {
	at := make(level, len(p.all))
	for i := range at {
		at[i] = p.all[i].skip(1)
	}
	return at
}

// skip adds what ** leads to when it stands for no level.
func (p *pattern) skip(used uint64) uint64 {
	for i, part := range p.parts {
		if part == "**" && used&(1<<i) != 0 {
			used |= 1 << (i + 1)
		}
	}
	return used
}

// match says how patterns match a cgroup.
type match struct {
	exact bool // it is meant
	deep  bool // it is meant if it has processes of its own
	below bool // one below it may match
}

// down returns the level of a cgroup by that name, and how the patterns match it.
func (p *Patterns) down(at level, name string) (next level, m match) {
	next = make(level, len(p.all))
	for i := range p.all {
		one := &p.all[i]
		end := uint64(1) << len(one.parts)
		for k, part := range one.parts {
			switch {
			case at[i]&(1<<k) == 0:
			case part == "**":
				next[i] |= 1 << k
			default:
				if ok, _ := path.Match(part, name); ok {
					next[i] |= 1 << (k + 1)
				}
			}
		}
		if one.deep && at[i]&end != 0 {
			next[i] |= end
			m.deep = true
		}
		next[i] = one.skip(next[i])
		m.exact = m.exact || !one.deep && next[i]&end != 0
		m.below = m.below || next[i]&(end-1) != 0 || one.deep && next[i]&end != 0
	}
	return next, m
}
