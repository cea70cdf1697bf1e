//go:build !linux

package emulate

import (
	"errors"
	"os"
)

// errLinux stands for posix_fadvise and mincore, without which no file is known to be cold.
var errLinux = errors.New("an emulated training loop needs Linux: only there can a file be made to leave the page cache")

func examine(string) (FileSystem, error) { return FileSystem{}, errLinux }
func forget(*os.File) error              { return errLinux }
func readNothingAhead(*os.File) error    { return errLinux }
