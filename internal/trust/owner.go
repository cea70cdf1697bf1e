// Package trust decides whose files this process may load, run or obey. It is at most as safe as the owners of these
// files: who may replace one of them has the rights of the process.
package trust

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// writers are the permissions that let others than the owner write.
const writers = 0o022

// Program returns the real path of a program or a library, without symbolic links, if only root and our own user can
// replace or change it: the file and all folders above it are theirs and closed to other writers. A process with
// more rights than its user (Privileged) trusts only root. An ordinary user may start what he likes.
func Program(path string) (target string, err error) {
	if os.Geteuid() != 0 && !Privileged() {
		return path, nil
	}
	if target, err = filepath.EvalSymlinks(path); err != nil {
		return "", err
	}
	if target, err = filepath.Abs(target); err != nil {
		return "", err
	}
	return target, OnlyOf(target, Users())
}

// OnlyOf is nil if only these users can replace or change a file. The path must have no symbolic links.
func OnlyOf(path string, users []uint32) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	return check(path, info, users)
}

// Opened returns why others than root and our user may write an open file, or nil. It checks the file itself, whatever
// happens to its name meanwhile.
func Opened(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	target, err := filepath.EvalSymlinks(fmt.Sprintf("/proc/self/fd/%d", file.Fd()))
	if err != nil {
		if target, err = filepath.EvalSymlinks(file.Name()); err != nil { // no /proc
			return err
		}
	}
	if target, err = filepath.Abs(target); err != nil {
		return err
	}
	return check(target, info, Users())
}

// Users are the users whose files this process may obey.
func Users() []uint32 {
	if own := os.Geteuid(); own > 0 && !Privileged() {
		return []uint32{0, uint32(own)}
	}
	return []uint32{0}
}

// check checks a file and the folders above it. The path has no symbolic links.
func check(path string, info fs.FileInfo, users []uint32) error {
	if err := closed(path, info, users); err != nil {
		return err
	}
	for folder := filepath.Dir(path); ; folder = filepath.Dir(folder) {
		info, err := os.Lstat(folder)
		if err != nil {
			return err
		}
		if err := closed(folder, info, users); err != nil {
			return err
		}
		if folder == filepath.Dir(folder) {
			return nil
		}
	}
}

// closed returns why others than the users may change a file, or the names in a folder. In a sticky folder only owners
// may replace their files.
func closed(path string, info fs.FileInfo, users []uint32) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return errors.New("the owner of " + path + " is unknown")
	}
	if !slices.Contains(users, st.Uid) {
		return fmt.Errorf("%s belongs to user %d: give it to root", path, st.Uid)
	}
	if sticky := info.IsDir() && info.Mode()&fs.ModeSticky != 0; info.Mode().Perm()&writers != 0 && !sticky {
		return fmt.Errorf("others than its owner may write %s: run chmod go-w on it", path)
	}
	return nil
}
