package history

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
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

// A layer is a device that is stacked on others. A machine may have dozens of them that do nothing, such as the loop
// devices of installed packages. So a layer gets columns when it does something for the first time.

// maxIdleLayers bounds the layers without columns that are remembered.
const maxIdleLayers = 1024

// idleLayer is the last reading of a layer without columns.
type idleLayer struct {
	values [maxColumns]float64
	reset  time.Duration
}

// movedLayer reports whether a layer has columns, or gets them now because it did something since its last reading. Its
// columns then begin with that reading.
func (h *History) movedLayer(a *axis, key groupKey, values [maxColumns]float64, reset, at time.Duration) bool {
	reads, writes := LayerReadIOs.index(), LayerWriteIOs.index()
	if a.groups[key] != nil {
		return true
	}
	was, known := h.idle[key.id]
	if known && was.reset == reset && was.values[reads] == values[reads] && was.values[writes] == values[writes] {
		return false
	}
	if known && was.reset == reset {
		if g := h.group(a, key, reset, at); g != nil {
			for i := range g.columns {
				g.columns[i].advance(key.kind, was.values[i], false, at)
				g.columns[i].whole = true // what it did before that reading was before the history
			}
			delete(h.idle, key.id)
			return true
		}
	}
	if h.idle == nil || len(h.idle) >= maxIdleLayers {
		h.idle = map[string]idleLayer{}
	}
	h.idle[key.id] = idleLayer{values, reset}
	return false
}
