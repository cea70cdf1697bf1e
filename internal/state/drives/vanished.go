package drives

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// vanished returns the drives that were seen in this boot or in the recent days, and that the machine no longer lists.
func (h *History) vanished(drives []sample.Drive, found []*Record, listing *Listing, at time.Time) (all []*Record) {
	present := map[*Record]bool{}
	for _, r := range found {
		present[r] = true
	}
	for _, id := range slices.Sorted(maps.Keys(h.records)) {
		r := h.records[id]
		seen := at.Sub(r.Seen) <= recent || r.Boot == h.boot && h.boot != ""
		if !present[r] && !at.Before(r.Seen) && seen && !r.Off && !r.isOff(listing) && r.isAbsent(drives, listing) {
			all = append(all, r)
		}
	}
	return all
}

// isAbsent reports whether a drive without a reading is absent. A drive in its place that does not identify itself may
// be it.
func (r *Record) isAbsent(drives []sample.Drive, listing *Listing) bool {
	place := placeOf(&r.Drive)
	replaced := false
	for i := range drives {
		d := &drives[i]
		switch {
		case isGone(d, listing):
			if placeOf(d) == place {
				return true
			}
		case r.hasSameLabel(d):
			return false
		case placeOf(d) != place:
		case r.isOther(d):
			replaced = true
		default:
			return false
		}
	}
	for _, id := range listing.Present {
		if id == r.Drive.ID {
			return false // present, but not read
		}
	}
	id, present := listing.Present[place.Device]
	switch {
	case replaced:
	case !place.Own():
		return false // no longer in the config, so nothing is read there
	case present && !r.hasOtherID(id, ""):
		return false
	}
	return listing.Complete || r.Gone
}

// isOff reports whether the config switches the drive off, so that it cannot vanish.
func (r *Record) isOff(listing *Listing) bool {
	for place := range listing.Off {
		id := listing.Present[place.Device]
		if place.Behind == "" && id != "" && id == r.Drive.ID ||
			place == placeOf(&r.Drive) && (place.Behind != "" || !r.hasOtherID(id, "")) {
			return true
		}
	}
	return false
}

// vanishedDrive returns the last reading with the status of a vanished drive.
func (r *Record) vanishedDrive(at time.Time) sample.Drive {
	d := r.Drive
	d.Status = sample.DriveVanished
	d.Finding = fmt.Sprintf("%s (%s, serial %s) has vanished: the machine listed it %s, and does not any more.",
		nameOf(&d), cmp.Or(d.Model, d.ID), cmp.Or(d.Serial, "unknown"), formatLastSeen(r.Seen, at))
	d.Remedy = "Look for it in the kernel log (dmesg), and reseat the drive and its cable. " +
		"If it was removed on purpose: stallspan health --forget '" + d.ID + "'."
	return d
}

func formatLastSeen(t, now time.Time) string {
	text := formatSince(t, now)
	if len(text) == len("15:04") {
		return "at " + text
	}
	return "on " + text
}
