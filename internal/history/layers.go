package history

import "time"

// A layer is a device that is stacked on others. A machine may have dozens of them that do nothing, such as the loop
// devices of installed packages. So a layer gets columns when it does something for the first time.

// maxIdleLayers bounds the layers without columns that are remembered.
const maxIdleLayers = 1024

// idleLayers are the last readings of layers without columns.
type idleLayers map[string]idleLayer

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
		h.idle = idleLayers{}
	}
	h.idle[key.id] = idleLayer{values, reset}
	return false
}
