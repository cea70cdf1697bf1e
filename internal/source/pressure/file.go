package pressure

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// file is one pressure file. It stays open between readings.
type file struct {
	path string
	open *kernfile.File
}

// read returns the totals. If an open file fails, it opens the file again, which may have been replaced.
func (f *file) read(buf []byte) (some, full time.Duration, err error) {
	wasOpen := f.open != nil
	some, full, err = f.readOnce(buf)
	if err != nil && wasOpen {
		some, full, err = f.readOnce(buf)
	}
	return some, full, err
}

func (f *file) readOnce(buf []byte) (some, full time.Duration, err error) {
	if f.open == nil {
		if f.open, err = kernfile.Open(f.path); err != nil {
			f.open = nil
			if errors.Is(err, fs.ErrPermission) {
				return 0, 0, fmt.Errorf("run as a user with access: %w", err)
			}
			return 0, 0, err
		}
	}
	n, err := f.open.ReadAt(buf, 0)
	if err != nil {
		f.close()
		return 0, 0, err
	}
	some, full, ok := parse(buf[:n])
	if !ok {
		f.close()
		return 0, 0, fmt.Errorf("%s does not have the format of Linux, check what is mounted there: it begins with %q",
			f.path, buf[:min(n, 80)])
	}
	return some, full, nil
}

func (f *file) close() {
	if f.open != nil {
		_ = f.open.Close() // read-only: the error has no meaning
		f.open = nil
	}
}
