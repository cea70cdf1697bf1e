package mount

import "strings"

// Covering is the mount that holds path, which must be absolute, cleaned and free of symbolic links. It goes down
// the tree of mounts as the kernel's own path walk does, so that a mount hidden below a later one is not found; the
// order of the lines and the length of the points alone would mislead.
func Covering(entries []Entry, path string) (Entry, bool) {
	byID := make(map[int]bool, len(entries))
	for i := range entries {
		byID[entries[i].ID] = true
	}
	at := -1
	for i := range entries {
		e := &entries[i]
		if e.Point == "/" && (!byID[e.Parent] || e.Parent == e.ID) {
			at = i // the tree's root hangs on a mount that this process cannot see
		}
	}
	if at < 0 {
		return longest(entries, path)
	}
	for range entries { // each step goes one mount deeper, so there cannot be more of them
		next := -1
		for i := range entries {
			e := &entries[i]
			if i == at || e.Parent != entries[at].ID || e.ID == e.Parent || !within(path, e.Point) || !within(e.Point, entries[at].Point) {
				continue
			}
			if next < 0 || len(e.Point) <= len(entries[next].Point) {
				next = i // the walk meets the shortest point first
			}
		}
		if next < 0 {
			break
		}
		at = next
	}
	return entries[at], true
}

// longest is the best guess where the tree has no root in sight, as after a chroot into a plain directory.
func longest(entries []Entry, path string) (Entry, bool) {
	best := -1
	for i := range entries {
		if within(path, entries[i].Point) && (best < 0 || len(entries[i].Point) >= len(entries[best].Point)) {
			best = i
		}
	}
	if best < 0 {
		return Entry{}, false
	}
	return entries[best], true
}

// within tells whether path is dir or lies in it.
func within(path, dir string) bool {
	rest, found := strings.CutPrefix(path, strings.TrimSuffix(dir, "/"))
	return found && (rest == "" || rest[0] == '/')
}
