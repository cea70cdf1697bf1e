package events

import (
	"math"

	"github.com/stallspan/stallspan/internal/condition"
	"github.com/stallspan/stallspan/internal/sample"
)

type told[K comparable] = condition.Told[K]

func resolved[K comparable](t told[K]) bool { return t.Change == condition.Resolved }

var unknown = math.NaN()

// health sees which drives fail, and which are gone. The drives are the same from one round of questions to the next, and
// so is what is found.
func (w *Watch) health(drives []sample.Drive) {
	at := w.now.Mono
	there := len(drives) > 0
	for i := range drives {
		d := &drives[i]
		key := d.ID
		if key == "" {
			key = d.Device
		}
		if _, known := w.drives[key]; !known && len(w.drives) >= most {
			continue
		}
		w.drives[key] = *d
		if t, changed := w.failing.Look(key, at, failing(d.Status)); changed {
			w.sayHealth(DiskFailing, t)
		}
		if t, changed := w.vanished.Look(key, at, vanished(d.Status)); changed {
			w.sayHealth(DiskVanished, t)
		}
	}
	if !there {
		return // nobody looks after them, or has not yet
	}
	for _, t := range w.failing.Rest(at) {
		w.sayHealth(DiskFailing, t)
	}
	for _, t := range w.vanished.Rest(at) {
		w.sayHealth(DiskVanished, t)
	}
	for key := range w.drives {
		if !w.failing.Has(key) && !w.vanished.Has(key) {
			delete(w.drives, key)
		}
	}
}

// failing is 1 for a drive that is to be replaced, and not a number where that is not known.
func failing(s sample.DriveStatus) float64 {
	switch s {
	case sample.DriveFailing, sample.DriveFailed:
		return 1
	case sample.DriveOK, sample.DriveDegraded:
		return 0
	}
	return unknown
}

func vanished(s sample.DriveStatus) float64 {
	if s == sample.DriveVanished {
		return 1
	}
	return 0 // one that cannot be asked is there
}

func (w *Watch) sayHealth(kind Kind, t told[string]) {
	d := w.drives[t.Key]
	e := Event{Kind: kind, Drive: &d, Disk: d.Device, Severe: true}
	name := d.Device
	if d.Model != "" {
		name += " (" + d.Model + ")"
	}
	switch {
	case t.Gone:
		e.Says = name + " is not looked after any more"
	case resolved(t) && kind == DiskVanished:
		e.Says = name + " is back"
	case resolved(t):
		e.Says = name + " gives no more reason to replace it"
	case kind == DiskVanished:
		e.Says = name + " was there, and the machine lists it no more: look at its cable, its slot and the kernel's log"
	default:
		e.Says = name + " is failing"
		if d.Finding != "" {
			e.Says = name + ": " + d.Finding
		}
		if d.Remedy != "" {
			e.Says += " " + d.Remedy
		}
	}
	say(w, t, e)
}
