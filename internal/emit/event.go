package emit

import (
	"github.com/stallspan/stallspan/internal/events"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/semconv"
)

// GPULost is the event of a GPU that can no longer be read.
func GPULost(e events.GPULost) Event {
	attrs := list{semconv.HwIDKey.String(utf8(e.GPU.ID))}
	attrs.text(semconv.HwNameKey, e.GPU.Name)
	attrs.text(semconv.HwDriverVersionKey, e.GPU.Driver)
	state := semconv.HwStateFailed
	if e.GPU.Status == sample.GPUHung {
		state = semconv.HwStateDegraded
	}
	attrs.add(state)
	return Event{Name: semconv.GPULostEvent.Name, Time: e.At, Severity: Warn, Attributes: attrs}
}
