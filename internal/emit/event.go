package emit

import (
	"fmt"

	"github.com/stallspan/stallspan/internal/events"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/window"
	"github.com/stallspan/stallspan/semconv"
)

// GPULost is the event of a GPU that can no longer be read.
func GPULost(e events.GPULost) Event {
	attrs := list{semconv.HwIDKey.String(utf8(e.GPU.ID))}
	attrs.text(semconv.HwNameKey, e.GPU.Name)
	attrs.text(semconv.HwDriverVersionKey, e.GPU.Driver)
	state, why := semconv.HwStateFailed, "its driver says that it is gone"
	if e.GPU.Status == sample.GPUHung {
		state, why = semconv.HwStateDegraded, "its driver does not answer"
	}
	attrs.add(state)
	return Event{
		Name: semconv.GPULostEvent.Name, Time: e.At, Severity: Warn, Attributes: attrs,
		Body: utf8(e.GPU.ID + " can no longer be read: " + why + "; look for Xid and NVRM in the kernel's log"),
	}
}

// storm is the event of an I/O storm that a window's end has shown.
func storm(r *window.Report, s *window.Storm) Event {
	return Event{
		Name: semconv.IOStormEvent.Name, Time: r.Wall(s.Since), Severity: Warn,
		Attributes: list{
			semconv.IOStormWindowsKey.Int(s.Windows),
			semconv.SystemDeviceNameKey.String(utf8(s.Disk)),
		},
		Body: utf8(fmt.Sprintf("%d windows read from %s at once, and two of them at least were slow: stagger the starts", s.Windows, s.Disk)),
	}
}
