//go:build !linux

package looking

import (
	"errors"

	"github.com/stallspan/stallspan/internal/source/process"
)

// own fails: there is no /proc.
func own(string) files { return none{} }

type none struct{}

// Files implements files.
func (none) ModelFiles(process.Key, process.FilesWanted) (process.Files, error) {
	return process.Files{}, errors.ErrUnsupported
}
