package drives

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// vanished are the drives that were here in this boot, or within the last days, and that the machine lists no more.
func (b *Book) vanished(asked []sample.Drive, found []*Record, list *Listing, at time.Time) []*Record {
	here := map[*Record]bool{}
	for _, r := range found {
		here[r] = true
	}
	var all []*Record
	for _, id := range slices.Sorted(maps.Keys(b.known)) {
		r := b.known[id]
		lately := at.Sub(r.Seen) <= recent || r.Boot == b.boot && b.boot != ""
		if !here[r] && !at.Before(r.Seen) && lately && !r.Off && !r.off(list) && r.absent(asked, list) {
			all = append(all, r)
		}
	}
	return all
}

// absent says whether a drive that none of those that were asked is known to be is not there. Whoever has its place and
// does not say what he is may be it.
func (r *Record) absent(asked []sample.Drive, list *Listing) bool {
	place := placeOf(&r.Drive)
	replaced := false
	for i := range asked {
		d := &asked[i]
		switch {
		case gone(d, list):
			if placeOf(d) == place {
				return true
			}
		case r.same(d):
			return false
		case placeOf(d) != place:
		case r.another(d):
			replaced = true
		default:
			return false
		}
	}
	for _, id := range list.There {
		if id == r.Drive.ID {
			return false // it is not asked
		}
	}
	id, there := list.There[place.Device]
	switch {
	case replaced:
	case !place.Own():
		return false // the config does not name it any more, and nobody else looks there
	case there && !r.otherID(id, ""):
		return false
	}
	return list.All || r.Gone
}

// off says whether the config has a drive not asked: it is not missed.
func (r *Record) off(list *Listing) bool {
	for place := range list.Off {
		id := list.There[place.Device]
		if place.Behind == "" && id != "" && id == r.Drive.ID || place == placeOf(&r.Drive) && (place.Behind != "" || !r.otherID(id, "")) {
			return true
		}
	}
	return false
}

// lost is a drive that has vanished, as it was.
func (r *Record) lost(at time.Time) sample.Drive {
	d := r.Drive
	d.Status = sample.DriveVanished
	d.Finding = fmt.Sprintf("%s (%s) has vanished: it was there %s, and the machine lists it no more.",
		name(&d), what(&d), lastSeen(r.Seen, at))
	d.Remedy = "Look into the kernel's log for it (dmesg), reseat it and its cable. If it was taken out on purpose: stallspan health --forget '" + d.ID + "'."
	return d
}

// what is a drive's make, for a person who looks for it.
func what(d *sample.Drive) string {
	return cmp.Or(d.Model, d.ID) + ", serial " + cmp.Or(d.Serial, "unknown")
}

func lastSeen(t, now time.Time) string {
	if text := since(t, now); len(text) == len("15:04") {
		return "at " + text
	} else if text[0] >= 'A' {
		return "on " + text
	}
	return "on " + t.Local().Format(time.DateOnly)
}
