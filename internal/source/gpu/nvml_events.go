//go:build linux && cgo

package gpu

import (
	"errors"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// maxEvents bounds the events of one reading. The next reading returns the rest.
const maxEvents = 64

// registerEvents also registers a GPU again that has returned, possibly after a reset.
func (h *handle) registerEvents() error {
	if !h.has("nvmlDeviceGetSupportedEventTypes", "nvmlDeviceRegisterEvents", "nvmlEventSetCreate", "nvmlEventSetWait",
		"nvmlEventSetFree") {
		return codeFunctionNotFound
	}
	supported, err := get(h.library, "nvmlDeviceGetSupportedEventTypes", h.device.GetSupportedEventTypes)
	if err != nil {
		return err
	}
	if supported&nvml.EventTypeXidCriticalError == 0 {
		return codeNotSupported
	}
	set, err := h.eventSet()
	if err != nil {
		return err
	}
	return h.call(callEvents, func() nvml.Return {
		return h.device.RegisterEvents(nvml.EventTypeXidCriticalError, set)
	})
}

// eventSet returns the session's event set, and creates it first if needed.
func (l *library) eventSet() (nvml.EventSet, error) {
	l.mu.Lock()
	set := l.session.events
	l.mu.Unlock()
	if set != nil {
		return set, nil
	}
	set, err := get(l, "nvmlEventSetCreate", l.EventSetCreate)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session.events = set
	return set, nil
}

func (l *library) events() (list []xidEvent, err error) {
	l.mu.Lock()
	set := l.session.events
	l.mu.Unlock()
	if set == nil {
		return nil, nil
	}
	for len(list) < maxEvents {
		data, err := get(l, "nvmlEventSetWait", func() (nvml.EventData, nvml.Return) { return set.Wait(0) })
		if errors.Is(err, codeTimeout) {
			return list, nil
		}
		if err != nil {
			return list, err
		}
		if data.EventType == nvml.EventTypeXidCriticalError {
			list = append(list, xidEvent{gpu: l.uuidOf(data.Device), xid: int(min(data.EventData, maxXID+1))})
		}
	}
	return list, nil
}

// uuidOf returns the UUID of a GPU that may be lost.
func (l *library) uuidOf(d nvml.Device) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.session.uuids[d]
}
