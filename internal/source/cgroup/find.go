package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// Bounds of a search.
const (
	maxSearched = 4096 // cgroups whose names are compared
	maxFound    = 256
)

// Group is a cgroup that patterns match.
type Group struct {
	Path   string // from the top of the tree
	Number uint64 // no other cgroup has it while the machine is up
	Owner  uint32 // the user who may make cgroups in it
}

// Search finds the cgroups of a machine that patterns match. Of nested ones, the topmost counts. A cgroup without
// processes does not match yet.
type Search struct {
	root     string
	patterns *Patterns
}

// NewSearch returns a search on the machine with "/" at root.
func NewSearch(root string, patterns *Patterns) *Search {
	return &Search{root: filepath.Join("/", root), patterns: patterns}
}

// ErrTooMany means that a search has ended early.
var ErrTooMany = errors.New("too many cgroups to search: give patterns with more levels that have no **")

// All returns the cgroups that match now, in the order of their paths. With ErrTooMany it returns those that it found.
func (s *Search) All() ([]Group, error) {
	tree, _, err := findTree(s.root)
	if err != nil {
		return nil, err
	}
	w := walk{patterns: s.patterns, point: tree.point, left: maxSearched}
	w.folder("", nil)
	if w.left < 0 {
		return w.found, ErrTooMany
	}
	return w.found, nil
}

// Of returns the cgroup that matches and is, or is above, one with processes.
func (s *Search) Of(scope string) (Group, bool) {
	tree, _, err := findTree(s.root)
	if err != nil {
		return Group{}, false
	}
	w := walk{patterns: s.patterns, point: tree.point}
	var names []string
	for name := range strings.SplitSeq(strings.TrimPrefix(scope, "/"), "/") {
		if name == "" || name == ".." || len(names) == maxLevels {
			break
		}
		names = append(names, name)
		if g, ok := w.meant("/"+strings.Join(names, "/"), s.patterns.match(names)); ok {
			return g, true
		}
	}
	return Group{}, false
}

// Same reports whether the cgroup still exists.
func (s *Search) Same(g Group) bool {
	dir, err := Dir(s.root, g.Path)
	if err != nil {
		return false
	}
	now, ok := groupAt(dir, g.Path)
	return ok && now.Number == g.Number
}

// Hidden reports whether a cgroup has processes, and all that it has are in another namespace of processes: the kernel
// lists them as 0.
func (s *Search) Hidden(g Group) bool {
	dir, err := Dir(s.root, g.Path)
	if err != nil {
		return false
	}
	hidden, seen := false, false
	left := maxGroups
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return nil
		}
		if left--; left < 0 || seen {
			return filepath.SkipAll
		}
		switch first := firstProcess(path); {
		case bytes.Equal(first, []byte("0")):
			hidden = true
		case len(first) > 0:
			seen = true
		}
		return nil
	})
	return hidden && !seen
}

// walk is one search.
type walk struct {
	patterns *Patterns
	point    string
	left     int // cgroups that may still be looked at
	found    []Group
}

// folder searches below a cgroup, whose levels have these names.
func (w *walk) folder(above string, levels []string) {
	if len(levels) >= maxLevels {
		return
	}
	names := folders(w.point + above)
	slices.Sort(names)
	for _, name := range names {
		if w.left--; w.left < 0 {
			return
		}
		path, at := above+"/"+name, slices.Concat(levels, []string{name})
		m := w.patterns.match(at)
		if g, ok := w.meant(path, m); ok {
			if len(w.found) == maxFound {
				w.left = -1
				return
			}
			w.found = append(w.found, g)
			continue
		}
		if m.below && hasFolders(w.point+path) {
			w.folder(path, at)
		}
	}
}

// meant returns a cgroup that patterns match and that has processes.
func (w *walk) meant(path string, m match) (Group, bool) {
	dir := w.point + path
	if m.exact && populated(dir) || m.deep && len(firstProcess(dir)) > 0 {
		return groupAt(dir, path)
	}
	return Group{}, false
}

// populated reports whether a cgroup or one below it has a process.
func populated(dir string) bool {
	var buf [256]byte
	text, err := kernfile.ReadPiece(dir+"/cgroup.events", buf[:])
	return err == nil && bytes.Contains(text, []byte("populated 1"))
}

// firstProcess returns the number of the first process that a cgroup itself lists, or nothing. A threaded cgroup lists
// none.
func firstProcess(dir string) []byte {
	var buf [256]byte
	text, err := kernfile.ReadPiece(dir+"/cgroup.procs", buf[:])
	if err != nil {
		return nil
	}
	first, _, _ := bytes.Cut(text, []byte("\n"))
	return bytes.Clone(first)
}

func groupAt(dir, path string) (Group, bool) {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return Group{}, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return Group{}, false
	}
	return Group{Path: path, Number: stat.Ino, Owner: stat.Uid}, true
}

// hasFolders reports whether a folder has others in it: each is a link to it. Some file systems do not count them.
func hasFolders(dir string) bool {
	const own = 2 // its name, and its "."
	info, err := os.Lstat(dir)
	if err != nil {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(stat.Nlink) != own
}

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

// match says how patterns match a cgroup.
type match struct {
	exact bool // it is meant
	deep  bool // it is meant if it has processes of its own
	below bool // one below it may match
}

// match returns how the patterns match the cgroup whose levels have these names.
func (p *Patterns) match(names []string) (m match) {
	for _, one := range p.all {
		m.exact = m.exact || !one.deep && matches(one.parts, names)
		for n := range len(names) { // what is below one that matches
			m.deep = m.deep || one.deep && matches(one.parts, names[:n])
		}
		m.below = m.below || one.deep && (m.deep || matches(one.parts, names)) || leads(one.parts, names)
	}
	return m
}

// matches reports whether names match the parts of a pattern. A ** that does not fit takes one more level: those before
// it need not be tried again.
func matches(parts, names []string) bool {
	part, name, last, from := 0, 0, -1, 0
	for name < len(names) {
		switch {
		case part < len(parts) && parts[part] == "**":
			last, from = part, name
			part++
		case part < len(parts) && fits(parts[part], names[name]):
			part, name = part+1, name+1
		case last >= 0:
			from++
			part, name = last+1, from
		default:
			return false
		}
	}
	for part < len(parts) && parts[part] == "**" {
		part++
	}
	return part == len(parts)
}

// leads reports whether names match the first parts of a pattern, and more follow.
func leads(parts, names []string) bool {
	if len(names) == 0 || len(parts) == 0 || parts[0] == "**" {
		return len(parts) > 0
	}
	return fits(parts[0], names[0]) && leads(parts[1:], names[1:])
}

func fits(part, name string) bool {
	ok, _ := path.Match(part, name)
	return ok
}
