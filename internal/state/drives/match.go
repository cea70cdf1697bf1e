package drives

import (
	"cmp"
	"slices"

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
