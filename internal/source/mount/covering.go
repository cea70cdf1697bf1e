package mount

import "strings"

// Covering returns the mount that contains path, which must be absolute, clean and free of symbolic links. It walks
// down the tree of mounts like the kernel, so that it does not find a mount that is hidden by a later one. The order of
// lines and the length of mount points are not sufficient.
func Covering(entries []Entry, path string) (Entry, bool) {
	byID := make(map[int]bool, len(entries))
	for i := range entries {
		byID[entries[i].ID] = true
	}
	at := -1
	for i := range entries {
		e := &entries[i]
		if e.Point == "/" && (!byID[e.Parent] || e.Parent == e.ID) {
			at = i // the parent of the root is not visible to this process
		}
	}
	if at < 0 {
		return longest(entries, path)
	}
	for range entries { // each step goes one mount deeper
		next := -1
		for i := range entries {
			e := &entries[i]
			if i == at || e.Parent != entries[at].ID || e.ID == e.Parent || !within(path, e.Point) ||
				!within(e.Point, entries[at].Point) {
				continue
			}
			if next < 0 || len(e.Point) <= len(entries[next].Point) {
				next = i // the walk reaches the shortest point first
			}
		}
		if next < 0 {
			break
		}
		at = next
	}
	return entries[at], true
}

// longest is the best guess without a visible root, as after a chroot into a directory that is not a mount.
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

// within reports whether path is dir or lies in it.
func within(path, dir string) bool {
	rest, found := strings.CutPrefix(path, strings.TrimSuffix(dir, "/"))
	return found && (rest == "" || rest[0] == '/')
}
