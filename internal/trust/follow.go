package trust

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxLinks bounds the symbolic links in a path, as in Linux.
const maxLinks = 40

// Follow returns the path of a file to be written, or replaced, without symbolic links. The file need not exist. In a
// sticky folder that all users may write it follows only links of our own user or the folder's owner, and accepts only
// their files, as Linux does with fs.protected_symlinks and fs.protected_regular. The kernel cannot apply this rule to
// links that were resolved here. Root follows the rule in every folder that others may write.
func Follow(path string) (string, error) {
	if !filepath.IsAbs(path) {
		here, err := os.Getwd()
		if err != nil {
			return "", err
		}
		path = here + "/" + path
	}
	done, names := "/", strings.Split(path, "/")
	for links := 0; len(names) > 0; {
		name := names[0]
		names = names[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			done = filepath.Dir(done)
			continue
		}
		next := filepath.Join(done, name)
		info, err := os.Lstat(next)
		if errors.Is(err, fs.ErrNotExist) {
			return filepath.Join(append([]string{next}, names...)...), nil
		}
		if err != nil {
			return "", err
		}
		isLink := info.Mode()&fs.ModeSymlink != 0
		if isLink || len(names) == 0 {
			if err := planted(done, next, info); err != nil {
				return "", err
			}
		}
		if !isLink || strings.HasPrefix(next, "/proc/") { // the text of a link to an open file is no path
			done = next
			continue
		}
		if links++; links > maxLinks {
			return "", &fs.PathError{Op: "follow", Path: path, Err: syscall.ELOOP}
		}
		to, err := os.Readlink(next)
		if err != nil {
			return "", err
		}
		if names = append(strings.Split(to, "/"), names...); filepath.IsAbs(to) {
			done = "/"
		}
	}
	return done, nil
}

// planted returns why a link or a file in a folder may be a trap.
func planted(folder, path string, info fs.FileInfo) error {
	in, err := os.Lstat(folder)
	if err != nil {
		return err
	}
	own := os.Geteuid()
	careful := own == 0 || Privileged()
	open := in.Mode()&fs.ModeSticky != 0 && in.Mode().Perm()&0o002 != 0 || careful && in.Mode().Perm()&writers != 0
	owner, _ := info.Sys().(*syscall.Stat_t)
	folderOwner, _ := in.Sys().(*syscall.Stat_t)
	if !open || owner == nil || folderOwner == nil || int(owner.Uid) == own || owner.Uid == folderOwner.Uid {
		return nil
	}
	return fmt.Errorf("%s belongs to user %d, in a folder that others may write: choose another name", path, owner.Uid)
}
