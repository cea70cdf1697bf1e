package history

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ErrFull is the error for devices that do not fit into MaxBytes.
var ErrFull = errors.New("the history has no room")

// refused are the devices without room.
type refused struct {
	count int                   // of attempts
	known map[groupKey]struct{} // since something was dropped
	err   error                 // with the names of named devices
	named int
}

// Bounds of the names of refused devices.
const (
	maxRefused = 4096
	maxNamed   = 8
)

func (r *refused) add(key groupKey) {
	r.count++
	if r.known == nil {
		r.known = map[groupKey]struct{}{}
	}
	if len(r.known) < maxRefused {
		r.known[key] = struct{}{}
	}
}

// still reports whether a device was refused before, and nothing was dropped since.
func (r *refused) still(key groupKey) bool {
	_, known := r.known[key]
	if known {
		r.count++
	}
	return known
}

// since returns an error with names if more was refused than before.
func (r *refused) since(before int) error {
	if r.count == before {
		return nil
	}
	if r.err == nil || r.named != len(r.known) {
		r.err, r.named = r.describe(), len(r.known)
	}
	return r.err
}

func (r *refused) describe() error {
	distinct := map[string]struct{}{} // a device may have several groups of columns
	for key := range r.known {
		distinct[key.forPeople()] = struct{}{}
	}
	names := slices.Sorted(maps.Keys(distinct))
	text := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if more := len(names) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Errorf("%w for %s: reports go without them", ErrFull, text)
}

func (k groupKey) forPeople() string {
	switch k.kind {
	case kindDisk:
		return "disk " + k.id
	case kindGPU, kindNone:
		return "GPU " + k.id
	case kindJob:
		return "job " + k.id
	case kindIO, kindCPUPressure:
		return "the pressure of " + k.id
	case kindMountRead, kindMountWrite, kindMountOther, kindMountWaiting:
		return "the mount " + k.id
	}
	return "a ledger" // whose id is not for people
}
