package drives

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/smart"
)

// A drive is recognized by its ID. If the ID has changed, because the kernel's is missing or smartctl's output was cut,
// it is recognized by model and serial number. If it reports neither, it is recognized by its place until the next
// boot. Cheap drives of one model may share a WWN, which is then ignored: their serial numbers distinguish them.

func placeOf(d *sample.Drive) smart.Place { return smart.PlaceOf(d.Device, d.Type) }

// comparable reports whether a record and a reading were made in the same way: a bridge has a serial number of its own.
func (r *Record) comparable(d *sample.Drive) bool {
	return r.Drive.Type == d.Type && (r.Drive.Protocol == d.Protocol || d.Protocol == "")
}

// differ reports whether two values are known and different.
func differ(a, b string) bool { return a != "" && b != "" && a != b }

// hasOtherSerial reports whether a drive has another serial number than the record, so it is another drive.
func (r *Record) hasOtherSerial(d *sample.Drive) bool {
	return r.comparable(d) && differ(r.Drive.Serial, d.Serial)
}

// hasOtherID reports whether a unique ID differs from the record's.
func (r *Record) hasOtherID(id, kind string) bool {
	same := r.Drive.Type == kind || smart.Direct(r.Drive.Type) && smart.Direct(kind)
	return same && smart.Unique(id) && smart.Unique(r.Drive.ID) && id != r.Drive.ID
}

// isOther reports whether a drive is certainly not the record's.
func (r *Record) isOther(d *sample.Drive) bool {
	return r.hasOtherSerial(d) || r.hasOtherID(d.ID, d.Type) || r.comparable(d) && differ(r.Drive.Model, d.Model)
}

// hasSameLabel reports whether a drive has the record's model and serial number. The namespaces of an NVMe drive, which
// do as well, are distinguished by their IDs.
func (r *Record) hasSameLabel(d *sample.Drive) bool {
	return d.Serial != "" && d.Model != "" && d.Serial == r.Drive.Serial && d.Model == r.Drive.Model &&
		(!smart.Unique(d.ID) || !smart.Unique(r.Drive.ID) || placeOf(d) == placeOf(&r.Drive))
}

// hasSamePlace reports whether a drive is in the record's place in this boot, and one of them cannot be identified
// better.
func (h *History) hasSamePlace(r *Record, d *sample.Drive) bool {
	vague := d.Serial == "" && !smart.Unique(d.ID) || d.Status != "" ||
		r.Drive.Serial == "" && !smart.Unique(r.Drive.ID)
	return vague && r.Boot == h.boot && h.boot != "" && placeOf(&r.Drive) == placeOf(d) && !r.isOther(d)
}

// match returns the record of each drive, or nil if the drive is unknown or gone. Several drives have the same record
// only by their ID: they are paths to one drive.
func (h *History) match(drives []sample.Drive, listing *Listing) []*Record {
	found := make([]*Record, len(drives))
	taken := map[*Record]bool{}
	for i := range drives {
		d := &drives[i]
		if r := h.records[d.ID]; r != nil && d.ID != "" && !isGone(d, listing) {
			found[i], taken[r] = r, true
		}
	}
	for _, fits := range []func(*Record, *sample.Drive) bool{(*Record).hasSameLabel, h.hasSamePlace} {
		for i := range drives {
			d := &drives[i]
			if found[i] != nil || isGone(d, listing) {
				continue
			}
			for _, r := range h.records {
				if !taken[r] && fits(r, d) && (found[i] == nil || r.Seen.After(found[i].Seen)) {
					found[i] = r
				}
			}
			if found[i] != nil {
				taken[found[i]] = true
			}
		}
	}
	return found
}

// isGone reports whether a drive could not be read because its device does not exist any more.
func isGone(d *sample.Drive, listing *Listing) bool { return d.Status != "" && listing.Gone(d.Device) }

// sharedIDs returns the IDs that several drives have, now or in the history.
func (h *History) sharedIDs(drives []sample.Drive) map[string]bool {
	all := map[string]bool{}
	if h != nil {
		for _, r := range h.records {
			all[r.Shared] = r.Shared != ""
		}
	}
	first := map[string]*sample.Drive{}
	for i := range drives {
		d := &drives[i]
		if d.Serial == "" || !smart.Unique(d.ID) {
			continue
		}
		if f := first[d.ID]; f != nil && f.Serial != d.Serial && placeOf(f) != placeOf(d) {
			all[d.ID] = true
		}
		first[d.ID] = cmp.Or(first[d.ID], d)
		if h != nil && h.records[d.ID] != nil && h.records[d.ID].hasOtherSerial(d) {
			all[d.ID] = true
		}
	}
	return all
}

// withoutShared returns a copy of drives in which shared IDs are replaced by model and serial number.
func withoutShared(drives []sample.Drive, shared map[string]bool) []sample.Drive {
	all := slices.Clone(drives)
	for i := range all {
		if d := &all[i]; shared[d.ID] {
			d.ID = ""
			if d.Serial != "" {
				d.ID = smart.Named(d.Model, d.Serial)
			}
		}
	}
	return all
}

// separate replaces shared IDs in the history.
func (h *History) separate(shared map[string]bool) {
	for id, is := range shared {
		if r := h.records[id]; is && r != nil {
			r.Shared = id
			h.rename(r, smart.Named(r.Drive.Model, r.Drive.Serial))
		}
	}
}

// rename gives a record another ID, unless another record has it.
func (h *History) rename(r *Record, id string) {
	if id == "" || h.records[id] != nil {
		return
	}
	delete(h.records, r.Drive.ID)
	r.Drive.ID = id
	h.records[id] = r
}

// idQuality ranks what a drive can be recognized by.
func idQuality(d *sample.Drive) int {
	switch {
	case smart.Unique(d.ID):
		return 2
	case d.Serial != "":
		return 1
	}
	return 0
}

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
