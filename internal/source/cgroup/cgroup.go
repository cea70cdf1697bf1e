// Package cgroup finds control groups of version 2: which one a process is in, and the folder in which it shows
// (Documentation/admin-guide/cgroup-v2.rst).
package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/mount"
)

// ScopeOf is the cgroup v2 path of a process: see View, which a caller with many processes keeps.
func ScopeOf(root string, pid int) (string, error) { return NewView(root).ScopeOf(pid) }

// seenScope is that path as the kernel shows it to this process.
func seenScope(root string, pid int) (string, error) {
	path := filepath.Join("/", root, "proc", strconv.Itoa(pid), "cgroup")
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("cannot tell the cgroup of process %d, check that it runs: %w", pid, err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, 64<<10)) // a dozen lines of at most 4 KiB
	if err != nil {
		return "", fmt.Errorf("cannot tell the cgroup of process %d, check that it runs: %w", pid, err)
	}
	scope, ok := parseScope(text)
	if !ok {
		return "", fmt.Errorf("process %d is in no cgroup v2, mount one (mount -t cgroup2 none /sys/fs/cgroup/unified) to tell its pressure from the host's", pid)
	}
	return scope, nil
}

// parseScope finds the path in the line "0::/path". All other lines belong to cgroup v1.
func parseScope(text []byte) (string, bool) {
	for line := range bytes.Lines(text) {
		path, ok := bytes.CutPrefix(bytes.TrimSuffix(line, []byte{'\n'}), []byte("0::"))
		if ok && len(path) > 0 && path[0] == '/' {
			return string(path), true
		}
	}
	return "", false
}

// Mountpoint is the folder where this process finds the cgroup v2 tree: /sys/fs/cgroup, on hybrid systems
// /sys/fs/cgroup/unified, below root where the host is mounted there.
func Mountpoint(root string) (string, error) {
	found, _, err := findTree(filepath.Join("/", root))
	return found.point, err
}

// tree is a mount of the cgroup v2 tree.
type tree struct {
	point string // the folder
	above int    // how many levels its top is above our cgroup namespace's root; unknown
}

const unknown = -1

// findTree gives the tree and the mounts among which it was found.
func findTree(root string) (tree, []sample.Mount, error) {
	file, err := os.Open(filepath.Join(root, "proc/self/mountinfo"))
	if err != nil {
		return tree{}, nil, fmt.Errorf("cannot look for cgroup v2, check that /proc is mounted: %w", err)
	}
	defer file.Close()
	mounts, err := mount.Parse(file)
	if found := chooseTree(root, mounts); found.point != "" {
		return found, mounts, nil // whatever the lines were that could not be understood
	}
	if err != nil {
		return tree{}, nil, fmt.Errorf("cannot look for cgroup v2: %w", err)
	}
	return tree{}, nil, errors.New("cgroup v2 is not mounted (or only a part of it): mount it with mount -t cgroup2 none /sys/fs/cgroup/unified")
}

// chooseTree chooses among the mounts that show the whole tree. A point that begins with root is a mount of the
// host's tree into this container and needs no prefix; of several the one that begins furthest up is the host's. Others
// are as a process on the other side of root sees them.
func chooseTree(root string, mounts []sample.Mount) tree {
	below, found := tree{above: unknown}, tree{}
	for _, m := range mounts {
		above := levelsAbove(m.Root)
		if m.Type != "cgroup2" || above == unknown {
			continue
		}
		if root != "/" && strings.HasPrefix(m.Point, root+"/") {
			if above > below.above {
				below = tree{m.Point, above}
			}
			continue
		}
		if point := filepath.Join(root, m.Point); found.point == "" && above == 0 && isFolder(point) {
			found = tree{point, unknown}
			if root == "/" {
				found.above = 0
			}
		}
	}
	if below.point != "" {
		return below
	}
	return found
}

// levelsAbove tells how far above our cgroup namespace's root a mount begins, from its root in mountinfo: "/" is that
// root itself, "/../.." two levels above (cgroup_namespaces(7)). unknown for what begins elsewhere.
func levelsAbove(mountRoot string) int {
	if mountRoot == "/" {
		return 0
	}
	levels := strings.Count(mountRoot, "/..")
	if mountRoot == "" || len(mountRoot) != levels*len("/..") {
		return unknown
	}
	return levels
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Dir is the folder of a cgroup, given by its path as in /proc/PID/cgroup. It does not say that the cgroup exists.
func Dir(root, scope string) (string, error) {
	if !strings.HasPrefix(scope, "/") || slices.Contains(strings.Split(scope, "/"), "..") {
		return "", fmt.Errorf("%q is not the path of a cgroup that can be seen from here: give one that begins with / and has no .., as in /proc/PID/cgroup: %w", scope, fs.ErrInvalid)
	}
	point, err := Mountpoint(root)
	if err != nil {
		return "", err
	}
	return filepath.Join(point, scope), nil
}
