package cgroup

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
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
	w.folder("", s.patterns.top(), 0)
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
	w := walk{patterns: s.patterns, point: tree.point, left: maxSearched}
	at, path := s.patterns.top(), ""
	for name := range strings.SplitSeq(strings.TrimPrefix(scope, "/"), "/") {
		if name == "" || name == ".." {
			break
		}
		path += "/" + name
		var m match
		at, m = s.patterns.down(at, name)
		if g, ok := w.meant(path, m); ok {
			return g, true
		}
		if !m.below {
			break
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

// folder searches below a cgroup.
func (w *walk) folder(above string, at level, depth int) {
	if depth >= maxLevels {
		return
	}
	names := folders(w.point + above)
	slices.Sort(names)
	for _, name := range names {
		if w.left--; w.left < 0 {
			return
		}
		next, m := w.patterns.down(at, name)
		path := above + "/" + name
		if g, ok := w.meant(path, m); ok {
			if len(w.found) == maxFound {
				w.left = -1
				return
			}
			w.found = append(w.found, g)
			continue
		}
		if m.below && hasFolders(w.point+path) {
			w.folder(path, next, depth+1)
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
