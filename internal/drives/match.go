package drives

import (
	"cmp"
	"slices"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/smart"
)

// How a drive is known again: by its identifier; where that has changed, by its model and serial number (the kernel's word
// is missing, smartctl's answer was cut); where it does not say what it is, by its place, until the machine is started
// anew. Cheap drives of one make may all have the same WWN, which is then none's: their serial numbers tell them apart.

func placeOf(d *sample.Drive) smart.Place { return smart.PlaceOf(d.Device, d.Type) }

// alike says whether a record and an answer were got in the same way: a bridge has a serial number of its own.
func (r *Record) alike(d *sample.Drive) bool {
	return r.Drive.Type == d.Type && (r.Drive.Protocol == d.Protocol || d.Protocol == "")
}

// apart says whether two words on the same thing differ: one that is not there is no contradiction.
func apart(a, b string) bool { return a != "" && b != "" && a != b }

// otherSerial says whether a drive has another serial number than a record, so that it is another drive.
func (r *Record) otherSerial(d *sample.Drive) bool {
	return r.alike(d) && apart(r.Drive.Serial, d.Serial)
}

// otherID says whether the kernel or the drive itself says that it is another one than a record's.
func (r *Record) otherID(id, kind string) bool {
	both := r.Drive.Type == kind || smart.Direct(r.Drive.Type) && smart.Direct(kind)
	return both && smart.Unique(id) && smart.Unique(r.Drive.ID) && id != r.Drive.ID
}

// another says whether a drive is for sure another one than a record's.
func (r *Record) another(d *sample.Drive) bool {
	return r.otherSerial(d) || r.otherID(d.ID, d.Type) || r.alike(d) && apart(r.Drive.Model, d.Model)
}

// same says whether a drive is a record's by what stands on its label. One drive may be listed as several, as an NVMe
// drive's namespaces are, each with an identifier of its own: those are not taken for each other.
func (r *Record) same(d *sample.Drive) bool {
	return d.Serial != "" && d.Model != "" && d.Serial == r.Drive.Serial && d.Model == r.Drive.Model &&
		(!smart.Unique(d.ID) || !smart.Unique(r.Drive.ID) || placeOf(d) == placeOf(&r.Drive))
}

// byPlace says whether a drive that does not say what it is, or a record of one that did not, is known by where it is.
func (b *Book) byPlace(r *Record, d *sample.Drive) bool {
	vague := d.Serial == "" && !smart.Unique(d.ID) || d.Status != "" || r.Drive.Serial == "" && !smart.Unique(r.Drive.ID)
	return vague && r.Boot == b.boot && b.boot != "" && placeOf(&r.Drive) == placeOf(d) && !r.another(d)
}

// match gives the record of each drive; nil for one that is not known, or is gone. Only an identifier may give a record to
// several drives: it is one drive with several ways to it.
func (b *Book) match(asked []sample.Drive, list *Listing) []*Record {
	found := make([]*Record, len(asked))
	taken := map[*Record]bool{}
	for i := range asked {
		d := &asked[i]
		if r := b.known[d.ID]; r != nil && d.ID != "" && !gone(d, list) {
			found[i], taken[r] = r, true
		}
	}
	for _, fits := range []func(*Record, *sample.Drive) bool{(*Record).same, b.byPlace} {
		for i := range asked {
			d := &asked[i]
			if found[i] != nil || gone(d, list) {
				continue
			}
			for _, r := range b.known {
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

// gone says whether a drive that was asked did not answer because it is not there any more.
func gone(d *sample.Drive, list *Listing) bool { return d.Status != "" && list.Gone(d.Device) }

// shared are the identifiers that several drives have, by these and by what was seen before.
func (b *Book) shared(asked []sample.Drive) map[string]bool {
	all := map[string]bool{}
	if b != nil {
		for _, r := range b.known {
			all[r.Shared] = r.Shared != ""
		}
	}
	first := map[string]*sample.Drive{}
	for i := range asked {
		d := &asked[i]
		if d.Serial == "" || !smart.Unique(d.ID) {
			continue
		}
		if f := first[d.ID]; f != nil && f.Serial != d.Serial && placeOf(f) != placeOf(d) {
			all[d.ID] = true
		}
		first[d.ID] = cmp.Or(first[d.ID], d)
		if b != nil && b.known[d.ID] != nil && b.known[d.ID].otherSerial(d) {
			all[d.ID] = true
		}
	}
	return all
}

// tellApart gives copies of drives, without the identifiers that are shared.
func tellApart(asked []sample.Drive, shared map[string]bool) []sample.Drive {
	all := slices.Clone(asked)
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

// part takes from records the identifiers that are shared.
func (b *Book) part(shared map[string]bool) {
	for id, is := range shared {
		if r := b.known[id]; is && r != nil {
			r.Shared = id
			b.rename(r, smart.Named(r.Drive.Model, r.Drive.Serial))
		}
	}
}

// rename gives a record another identifier, where no other has it.
func (b *Book) rename(r *Record, id string) {
	if id == "" || b.known[id] != nil {
		return
	}
	delete(b.known, r.Drive.ID)
	r.Drive.ID = id
	b.known[id] = r
}

// certainty orders what a drive may be known by.
func certainty(d *sample.Drive) int {
	switch {
	case smart.Unique(d.ID):
		return 2
	case d.Serial != "":
		return 1
	}
	return 0
}
