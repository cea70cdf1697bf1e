package emulate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/stallspan/stallspan/internal/source/pagecache"
)

// stillWarm is the share of the files that may stay in the page cache and they still count as cold.
const stillWarm = 0.05

// StillCachedError says that files did not leave the page cache when they were told to.
type StillCachedError struct {
	System string // the file system's name
	Cached int64  // bytes
	Of     int64  // bytes
}

func (e *StillCachedError) Error() string {
	return fmt.Sprintf("%s of %s stay in the page cache of this %s, so reading them is not cold: pass --dir with a path on another file system",
		size(e.Cached), size(e.Of), e.System)
}

// Cold makes all files leave the page cache. The error is a *StillCachedError where more than 5 % of their bytes
// stay. A cache below the kernel's own (ZFS's, a host's, a server's) is not seen; Calibrate notices it by the time.
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

// Cached is how many bytes of the files are in the page cache now, to the page, and how many there are.
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

// Warm reads all files, so that the page cache holds as much of them as it has room for; Cached says how much.
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
