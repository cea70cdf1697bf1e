//go:build !linux

package cuda

import (
	"errors"

	"github.com/stallspan/stallspan/internal/source/process"
)

type none struct{}

func own(string) reader { return none{} }

// HasDevice implements reader.
func (none) HasDevice(process.Key, uint64) (bool, int, error) { return false, 0, errors.ErrUnsupported }

func deviceNumber(string) uint64 { return 0 }

func makeNumber(uint32) uint64 { return 0 }

type opened struct{}

func watch(string) *opened         { return nil }
func (*opened) on(string) bool     { return true }
func (*opened) heard() (some bool) { return false }
func (*opened) close()             {}
