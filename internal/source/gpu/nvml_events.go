//go:build linux && cgo

package gpu

import (
	"errors"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// maxEvents bounds the events of one reading. The next reading returns the rest.
const maxEvents = 64

// watched is a GPU that is registered for XID events.
type watched struct {
	device nvml.Device
	uuid   string
}

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
	err = h.call("nvmlDeviceRegisterEvents", func() nvml.Return {
		return h.device.RegisterEvents(nvml.EventTypeXidCriticalError, set)
	})
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	s := &h.session
	s.watched = slices.DeleteFunc(s.watched, func(w watched) bool { return w.uuid == h.uuid })
	s.watched = append(s.watched, watched{h.device, h.uuid})
	return nil
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
	i := slices.IndexFunc(l.session.watched, func(w watched) bool { return w.device == d })
	if i >= 0 {
		uuid := l.session.watched[i].uuid
		l.mu.Unlock()
		return uuid
	}
	l.mu.Unlock()
	uuid, _ := get(l, "nvmlDeviceGetUUID", d.GetUUID)
	return uuid
}
