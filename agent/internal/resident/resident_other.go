//go:build !linux

package resident

import "errors"

type file struct{}

func own() (file, error) { return file{}, errors.ErrUnsupported }

func (file) divide() error  { return errors.ErrUnsupported }
func (file) release() error { return errors.ErrUnsupported }
