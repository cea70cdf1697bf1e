package pressure

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// file is one pressure file, kept open between readings.
type file struct {
	path string
	kept *kernfile.File
}

// read gives the totals of now. A file that was open and fails is opened once more: it may have been replaced.
func (f *file) read(buf []byte) (some, full time.Duration, err error) {
	wasOpen := f.kept != nil
	some, full, err = f.readOnce(buf)
	if err != nil && wasOpen {
		some, full, err = f.readOnce(buf)
	}
	return some, full, err
}

func (f *file) readOnce(buf []byte) (some, full time.Duration, err error) {
	if f.kept == nil {
		if f.kept, err = kernfile.Open(f.path); err != nil {
			f.kept = nil
			if errors.Is(err, fs.ErrPermission) {
				return 0, 0, fmt.Errorf("run as a user that may read it: %w", err)
			}
			return 0, 0, err
		}
	}
	n, err := f.kept.ReadAt(buf, 0)
	if err != nil {
		f.close()
		return 0, 0, err
	}
	some, full, ok := parse(buf[:n])
	if !ok {
		f.close()
		return 0, 0, fmt.Errorf("%s is not what a Linux kernel prints, check what is mounted there: it begins with %q", f.path, buf[:min(n, 80)])
	}
	return some, full, nil
}

func (f *file) close() {
	if f.kept != nil {
		_ = f.kept.Close() // it was only read from: there is nothing to lose
		f.kept = nil
	}
}
