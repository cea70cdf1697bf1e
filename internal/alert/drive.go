package alert

import (
	"cmp"
	"maps"

	"github.com/stallspan/stallspan/internal/sample"
)

// evaluateDrives detects failing and vanished drives. Drives are read every ten minutes; between two readings the list
// stays the same.
func (w *Watcher) evaluateDrives(drives []sample.Drive) {
	at := w.now.Mono
	for i := range drives {
		d := &drives[i]
		key := cmp.Or(d.ID, d.Device)
		if _, known := w.drives[key]; !known && len(w.drives) >= maxDevices {
			continue
		}
		w.drives[key] = *d
		if t, changed := w.failing.evaluate(key, at, failing(d.Status)); changed {
			w.emitDrive(DiskFailing, t)
		}
		// One that cannot be read is present.
		if t, changed := w.vanished.evaluate(key, at, oneIf(d.Status == sample.DriveVanished)); changed {
			w.emitDrive(DiskVanished, t)
		}
	}
	if len(drives) == 0 {
		return // drives are not read, or not yet
	}
	for _, t := range w.failing.endRound(at) {
		w.emitDrive(DiskFailing, t)
	}
	for _, t := range w.vanished.endRound(at) {
		w.emitDrive(DiskVanished, t)
	}
	maps.DeleteFunc(w.drives, func(key string, _ sample.Drive) bool { return !w.failing.has(key) && !w.vanished.has(key) })
}

// failing is 1 for a drive that should be replaced.
func failing(s sample.DriveStatus) float64 {
	switch s {
	case sample.DriveFailing, sample.DriveFailed:
		return 1
	case sample.DriveOK, sample.DriveDegraded:
		return 0
	}
	return unknown
}

func (w *Watcher) emitDrive(kind Kind, t transition[string]) {
	d := w.drives[t.key]
	e := Event{Kind: kind, Drive: &d, Disk: d.Device, Severe: true}
	name := d.Device
	if d.Model != "" {
		name += " (" + d.Model + ")"
	}
	switch {
	case t.removed:
		e.Message = name + " is no longer monitored"
	case t.resolved && kind == DiskVanished:
		e.Message = name + " is back"
	case t.resolved:
		e.Message = name + " no longer needs to be replaced"
	case kind == DiskVanished:
		e.Message = name + " has disappeared from the machine: check its cable, its slot and the kernel log"
	default:
		e.Message = name + " is failing"
		if d.Finding != "" {
			e.Message = name + ": " + d.Finding
		}
		if d.Remedy != "" {
			e.Message += " " + d.Remedy
		}
	}
	emit(w, t, e)
}
