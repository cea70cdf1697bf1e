package window

import (
	"slices"

	"github.com/stallspan/stallspan/internal/sample"
)

// Shares of a disk's ceiling from which it counts as near it, and up to which as far from it.
const (
	nearCeiling = 0.8
	farCeiling  = 0.5
)

func ceilingOf(all []sample.Ceiling, disk string) sample.Ceiling {
	if i := slices.IndexFunc(all, func(c sample.Ceiling) bool { return c.Disk == disk }); i >= 0 {
		return all[i]
	}
	return sample.Ceiling{}
}

// ceilings adds to each disk the highest throughput that was seen of it so far.
func (r *Report) ceilings(m Machine) {
	for i := range r.Disks {
		d := &r.Disks[i]
		c := ceilingOf(m.Ceilings, d.Name)
		d.ReadCeiling, d.WriteCeiling = c.Read, c.Write
	}
}

// share is a disk's mean throughput in the window as a share of a ceiling; 0 where nothing is known, as of a disk that was
// seen for a part of the window alone.
func (r *Report) share(disk string, bytes uint64, ceiling float64) float64 {
	seconds := r.Duration().Seconds()
	if ceiling <= 0 || seconds <= 0 || slices.Contains(r.torn, disk) {
		return 0
	}
	return min(1, float64(bytes)/seconds/ceiling)
}

// pace says whether a disk read nearly as fast in the window as it had ever been seen to before it, or far from as fast as
// it ever was. What it did in the window itself is no proof that it can do no more.
func (r *Report) pace(d *DiskUse) (near, far bool) {
	before := ceilingOf(r.Ceilings, d.Name).Read
	near = r.share(d.Name, d.ReadBytes, before) >= nearCeiling
	now := r.share(d.Name, d.ReadBytes, d.ReadCeiling)
	return near, now > 0 && now <= farCeiling
}
