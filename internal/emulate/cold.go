package emulate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/stallspan/stallspan/internal/source/pagecache"
)

// stillWarm is the maximum share of cached bytes at which files still count as cold.
const stillWarm = 0.05

// StillCachedError reports files that stayed in the page cache although they should have been dropped.
type StillCachedError struct {
	System string // the file system's name
	Cached int64  // bytes
	Of     int64  // bytes
}

func (e *StillCachedError) Error() string {
	return fmt.Sprintf("%s of %s stay in the page cache of this %s, so reading them is not cold: pass --dir with a path "+
		"on another file system",
		size(e.Cached), size(e.Of), e.System)
}

// Cold drops all files from the page cache. The error is a *StillCachedError if more than 5 % of their bytes stay.
// Caches below the kernel's (ZFS, the hypervisor's host, a server) are invisible here; Calibrate detects them by the
// time of a read.
func (f *Files) Cold() error {
	for _, path := range f.paths() {
		if err := with(path, forget); err != nil {
			return err
		}
	}
	return f.checkCold(f.paths()...)
}

func (f *Files) checkCold(paths ...string) error {
	found, of, err := f.cachedOf(paths...)
	if err != nil {
		return err
	}
	if float64(found) > stillWarm*float64(of) {
		return &StillCachedError{System: f.system.Name, Cached: found, Of: of}
	}
	return nil
}

// Cached returns how many bytes of the files are in the page cache, in whole pages, and how many bytes there are.
func (f *Files) Cached() (found, of int64, err error) { return f.cachedOf(f.paths()...) }

func (f *Files) cachedOf(paths ...string) (found, of int64, err error) {
	for _, path := range paths {
		err := with(path, func(file *os.File) error {
			n, size, err := pagecache.Resident(file)
			found += n
			of += size
			return err
		})
		if err != nil {
			return 0, 0, err
		}
	}
	return found, of, nil
}

// Warm reads all files into the page cache, which keeps what it has room for; Cached returns how much.
func (f *Files) Warm(ctx context.Context) error {
	buffer := make([]byte, mib)
	for _, path := range f.paths() {
		err := with(path, func(file *os.File) error {
			for {
				if err := ctx.Err(); err != nil {
					return err
				}
				if _, err := file.Read(buffer); errors.Is(err, io.EOF) {
					return nil
				} else if err != nil {
					return err
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// with opens a file for reading, uses it and closes it.
func with(path string, use func(*os.File) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	return use(file)
}
