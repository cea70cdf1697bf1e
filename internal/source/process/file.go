package process

import (
	"bytes"
	"errors"
	"io/fs"
	"syscall"

	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// gone reports whether err means that the process or cgroup no longer exists.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) || errors.Is(err, syscall.ENODEV)
}

// maxSmall bounds files that are read once, in bytes.
const maxSmall = 4096

// readSmall returns the text of a file that is read once and that the kernel prints in one piece.
func readSmall(path string) ([]byte, error) {
	var buf [maxSmall]byte
	text, err := kernfile.ReadPiece(path, buf[:])
	return bytes.Clone(text), err
}
