// Package cgroup finds the cgroup v2 of a process and its folder (Documentation/admin-guide/cgroup-v2.rst).
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

// ScopeOf returns the cgroup v2 path of a process. For many processes, use a View.
func ScopeOf(root string, pid int) (string, error) { return NewView(root).ScopeOf(pid) }

// seenScope returns that path as the kernel shows it to this process.
func seenScope(root string, pid int) (string, error) {
	path := filepath.Join("/", root, "proc", strconv.Itoa(pid), "cgroup")
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("cannot read the cgroup of process %d, check that it runs: %w", pid, err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, 64<<10)) // a dozen lines of at most 4 KiB
	if err != nil {
		return "", fmt.Errorf("cannot read the cgroup of process %d, check that it runs: %w", pid, err)
	}
	scope, ok := parseScope(text)
	if !ok {
		return "", fmt.Errorf("process %d is in no cgroup v2, so its pressure is that of the host: "+
			"mount one (mount -t cgroup2 none /sys/fs/cgroup/unified)", pid)
	}
	return scope, nil
}

// parseScope returns the path of the line "0::/path". Other lines are for cgroup v1.
func parseScope(text []byte) (string, bool) {
	for line := range bytes.Lines(text) {
		path, ok := bytes.CutPrefix(bytes.TrimSuffix(line, []byte{'\n'}), []byte("0::"))
		if ok && len(path) > 0 && path[0] == '/' {
			return string(path), true
		}
	}
	return "", false
}

// Mountpoint returns the folder of the cgroup v2 tree: /sys/fs/cgroup, or /sys/fs/cgroup/unified on hybrid systems. It
// is below root if the host is mounted there.
func Mountpoint(root string) (string, error) {
	found, _, err := findTree(filepath.Join("/", root))
	return found.point, err
}

// tree is a mount of the cgroup v2 tree.
type tree struct {
	point string // the folder
	above int    // levels of its top above the root of our cgroup namespace, or unknown
}

const unknown = -1

// findTree returns the tree and all mounts.
func findTree(root string) (tree, []sample.Mount, error) {
	file, err := os.Open(filepath.Join(root, "proc/self/mountinfo"))
	if err != nil {
		return tree{}, nil, fmt.Errorf("cannot find cgroup v2, check that /proc is mounted: %w", err)
	}
	defer file.Close()
	mounts, err := mount.Parse(file)
	if found := chooseTree(root, mounts); found.point != "" {
		return found, mounts, nil // also with lines that cannot be parsed
	}
	if err != nil {
		return tree{}, nil, fmt.Errorf("cannot find cgroup v2: %w", err)
	}
	return tree{}, nil, errors.New("cgroup v2 is not mounted completely: " +
		"mount it with mount -t cgroup2 none /sys/fs/cgroup/unified")
}

// chooseTree selects a mount of the whole tree. A point below root is a mount of the host's tree in this container and
// needs no prefix; of several, that of the host starts furthest up. Other points are paths of a process with its "/" at
// root.
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

// levelsAbove returns how many levels a mount starts above the root of our cgroup namespace, by its root in mountinfo:
// "/" is that root, "/../.." two levels above (cgroup_namespaces(7)). It returns unknown for other roots.
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

// Dir returns the folder of a cgroup by its path as in /proc/PID/cgroup. The cgroup need not exist.
func Dir(root, scope string) (string, error) {
	if !strings.HasPrefix(scope, "/") || slices.Contains(strings.Split(scope, "/"), "..") {
		return "", fmt.Errorf("%q is not the path of a cgroup in this namespace: "+
			"give one with a leading / and without .., as in /proc/PID/cgroup: %w", scope, fs.ErrInvalid)
	}
	point, err := Mountpoint(root)
	if err != nil {
		return "", err
	}
	return filepath.Join(point, scope), nil
}
