package cgroup

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxGroups bounds a search. A node with 100 pods has about 500 cgroups.
const maxGroups = 1 << 15

// findOwn finds the root of our cgroup namespace in the tree below root: see View.Own.
func findOwn(root string) string {
	top, mounts, err := findTree(root)
	switch {
	case err != nil:
		return ""
	case top.above == 0:
		return "/" // the same as our namespace
	}
	for _, m := range mounts {
		if m.Type != "cgroup2" || m.Root != "/" || strings.HasPrefix(m.Point, root+"/") {
			continue
		}
		own, err := os.Stat(m.Point)
		if err != nil {
			continue
		}
		if found := search(top, own); found != "" {
			return found
		}
	}
	return ""
}

// search finds the folder of own in the tree, by device and inode: all mounts of cgroup v2 are one file system. It goes
// down to the level of own. It returns "" if own is not found.
func search(top tree, own fs.FileInfo) string {
	if here, err := os.Stat(top.point); err == nil && os.SameFile(here, own) {
		if top.above == unknown {
			return "/"
		}
		return "" // another mount covers our own
	}
	left := maxGroups
	for depth, level := 1, []string{""}; len(level) > 0; depth++ {
		var next []string
		for _, above := range level {
			for _, name := range folders(top.point + above) {
				if left--; left < 0 {
					return ""
				}
				path := above + "/" + name
				if top.above != unknown && depth < top.above {
					next = append(next, path)
					continue
				}
				if here, err := os.Lstat(top.point + path); err == nil && os.SameFile(here, own) {
					return path
				}
				if top.above == unknown {
					next = append(next, path)
				}
			}
		}
		level = next
	}
	return ""
}

// folders lists the folders in a folder, or none if it cannot be read.
func folders(path string) []string {
	file, err := os.Open(filepath.Clean(path))
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	entries, _ := file.ReadDir(2 * maxGroups) // entries before an error are valid; files count
	var names []string
	for _, entry := range entries {
		if entry.IsDir() {
			names = append(names, entry.Name())
		}
	}
	return names
}
