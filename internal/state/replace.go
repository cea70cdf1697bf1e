package state

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/stallspan/stallspan/internal/trust"
)

const fileMode = 0o600

// Replace writes a file as a whole. If the program is killed or a system call fails, the old text is there, or the new
// one. The text is synced before it replaces the old one, but what a loss of power leaves is not tested. An existing
// file keeps its owner and mode, a new one has mode 0600 and, if root writes it, the folder's owner. The folder must
// exist.
func Replace(path string, text []byte) error {
	path, err := trust.Follow(path) // so that the file is replaced and not a link to it
	if err != nil {
		return err
	}
	folder := filepath.Dir(path)
	unfinished := "." + filepath.Base(path) + "-*.new"
	sweep(folder, unfinished)
	temp, err := os.CreateTemp(folder, unfinished) // mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }() // fails after the rename
	LikeOld(temp, path)
	_, err = temp.Write(text)
	if err := errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return err
	}
	if f, err := os.Open(folder); err == nil {
		_ = f.Sync() // some file systems do not support it
		_ = f.Close()
	}
	return nil
}

// LikeOld gives a new file the owner and the mode of the file that it replaces. Without one it gets the owner of its
// folder and keeps its mode, so that a command of root does not lock the folder's user out.
func LikeOld(file *os.File, path string) {
	if info, err := os.Stat(path); err == nil {
		setOwner(file, info)
		_ = file.Chmod(info.Mode().Perm())
	} else {
		LikeFolder(file)
	}
}

// LikeFolder gives a new file or folder of root the owner of the folder that it is in.
func LikeFolder(file *os.File) {
	if info, err := os.Stat(filepath.Dir(file.Name())); err == nil && os.Geteuid() == 0 {
		setOwner(file, info)
	}
}

// openLock opens a lock file. A new one belongs to the owner of its folder, so that root does not lock the user out. A
// group that may write the folder may use it.
func openLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, fileMode)
	if errors.Is(err, fs.ErrExist) {
		return os.OpenFile(path, os.O_RDWR, fileMode)
	}
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(filepath.Dir(path)); err == nil {
		setOwner(file, info)
		if info.Mode().Perm()&0o020 != 0 { // others who can open the file could hold its lock
			_ = file.Chmod(fileMode | 0o060)
		}
	}
	return file, nil
}

// sweep removes temporary files that crashes left in a folder: files over an hour old that match the pattern.
func sweep(folder, pattern string) {
	left, _ := filepath.Glob(filepath.Join(folder, pattern))
	for _, path := range left {
		if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > time.Hour {
			_ = os.Remove(path)
		}
	}
}

// maxRenamed is how many files are kept that could not be used, of one path. A program that fails each time would else
// leave one with each start.
const maxRenamed = 8

// renamedSuffix is what Quarantine appends to a path. Its first part is the kind of damage.
var renamedSuffix = regexp.MustCompile(`^\.[a-z]+(?:-[0-9]+)?-([0-9]{8}T[0-9]{6}Z)(?:-([0-9]{1,3}))?$`)

// Quarantine renames a file that cannot be used. The new name consists of the old one, the kind of damage and the time.
// The oldest of more than eight such files are removed. Processes that share the file must hold its lock.
func Quarantine(path, kind string) (name string, err error) {
	stem := path + "." + kind + "-" + time.Now().UTC().Format("20060102T150405Z")
	for i := 1; i < 1000; i++ {
		name = stem
		if i > 1 {
			name += "-" + strconv.Itoa(i)
		}
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			if err := os.Rename(path, name); err != nil {
				return name, err
			}
			pruneRenamed(path, name)
			return name, nil
		}
	}
	return "", fmt.Errorf("%s and 998 more like it exist already", stem)
}

// pruneRenamed removes the oldest files that Quarantine has renamed, by the times in their names.
func pruneRenamed(path, newest string) {
	type renamed struct {
		path, time string
		number     int // of those of the same second
	}
	entries, _ := os.ReadDir(filepath.Dir(path))
	var all []renamed
	for _, e := range entries {
		suffix, ok := strings.CutPrefix(e.Name(), filepath.Base(path))
		parts := renamedSuffix.FindStringSubmatch(suffix)
		other := filepath.Join(filepath.Dir(path), e.Name())
		if !ok || parts == nil || !e.Type().IsRegular() || other == filepath.Clean(newest) {
			continue
		}
		number, _ := strconv.Atoi(parts[2])
		all = append(all, renamed{other, parts[1], number})
	}
	slices.SortFunc(all, func(a, b renamed) int {
		return cmp.Or(cmp.Compare(a.time, b.time), cmp.Compare(a.number, b.number))
	})
	for _, a := range all[:max(0, len(all)-(maxRenamed-1))] {
		_ = os.Remove(a.path)
	}
}

// lockInterval is the time between two attempts to get a lock. Holders need milliseconds.
const lockInterval = 5 * time.Millisecond

// ErrLocked is the error of a lock that other processes kept for too long.
var ErrLocked = errors.New("another process keeps it locked")

// Lock takes an exclusive lock (flock) on an open file or folder, which ends when it is closed. It waits at most so
// long for other holders. A file system without locks is used without.
func Lock(file *os.File, wait time.Duration) error {
	for end := time.Now().Add(wait); ; time.Sleep(lockInterval) {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
		case !errors.Is(err, syscall.EWOULDBLOCK):
			return nil
		case !time.Now().Before(end):
			return ErrLocked
		}
	}
}

// setOwner gives a new file the owner and the group of another one. Only root can change the owner, and others can
// choose only a group of theirs, so errors are ignored.
func setOwner(file *os.File, from os.FileInfo) {
	s, ok := from.Sys().(*syscall.Stat_t)
	if ok && file.Chown(int(s.Uid), int(s.Gid)) != nil {
		_ = file.Chown(-1, int(s.Gid))
	}
}
