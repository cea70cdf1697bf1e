package disk

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// maxLinks bounds the symbolic links of a path, as in the kernel.
const maxLinks = 40

var errLinks = errors.New("too many symbolic links")

// resolve returns an absolute path without symbolic links, as seen by a process with "/" at the folder root: absolute
// links stay inside it. It fails if the path does not exist.
func resolve(root, path string) (string, error) {
	done, left, links := "/", strings.TrimPrefix(filepath.Clean("/"+path), "/"), 0
	for left != "" {
		var name string
		name, left, _ = strings.Cut(left, "/")
		switch name {
		case "", ".":
			continue
		case "..":
			done = filepath.Dir(done)
			continue
		}
		next := filepath.Join(done, name)
		info, err := os.Lstat(filepath.Join(root, next))
		if err != nil {
			return "", err
		}
		if info.Mode()&os.ModeSymlink == 0 {
			done = next
			continue
		}
		if links++; links > maxLinks {
			return "", &os.PathError{Op: "resolve", Path: path, Err: errLinks}
		}
		target, err := os.Readlink(filepath.Join(root, next))
		if err != nil {
			return "", err
		}
		if filepath.IsAbs(target) {
			done = "/"
		}
		left = target + "/" + left
	}
	return done, nil
}
