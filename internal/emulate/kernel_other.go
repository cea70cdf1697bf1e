//go:build !linux

package emulate

import (
	"errors"
	"os"
)

// errLinux is the error on systems without posix_fadvise and mincore, which keep a file out of the page cache.
var errLinux = errors.New("an emulated training loop needs Linux: only it can drop a file from the page cache")

func examine(string) (FileSystem, error) { return FileSystem{}, errLinux }
func forget(*os.File) error              { return errLinux }
func readNothingAhead(*os.File) error    { return errLinux }
