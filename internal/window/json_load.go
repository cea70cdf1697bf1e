package window

// What of docs/report.md is about loads, and about what disks can do.

type loadJSON struct {
	Size      uint64       `json:"size,omitempty"`
	Hit       *float64     `json:"page_cache_hit_ratio,omitempty"`
	Estimated bool         `json:"estimated,omitempty"`
	Readers   []readerJSON `json:"readers,omitempty"`
}

type readerJSON struct {
	PID   int    `json:"pid"`
	Name  string `json:"name,omitempty"`
	Group string `json:"cgroup,omitempty"`
	Bytes uint64 `json:"read_bytes"`
	Own   bool   `json:"own,omitempty"`
}

type ceilingJSON struct {
	Read       float64 `json:"read_ceiling,omitempty"`
	ReadRatio  float64 `json:"read_ceiling_ratio,omitempty"`
	Write      float64 `json:"write_ceiling,omitempty"`
	WriteRatio float64 `json:"write_ceiling_ratio,omitempty"`
}

// loadJSON is nil where nothing is known.
func (r *Report) loadJSON() *loadJSON {
	l := &r.Load
	if l.Size == 0 && len(l.Readers) == 0 {
		return nil
	}
	out := &loadJSON{Size: l.Size, Estimated: l.Estimated}
	if l.HasHit {
		out.Hit = &l.Hit
	}
	for _, x := range l.Readers {
		out.Readers = append(out.Readers, readerJSON(x))
	}
	return out
}

// ceilingJSON is nil where nothing was learned. The ratios are of what was seen before the window: of what it did itself it
// would always be nearly all.
func (r *Report) ceilingJSON(d *DiskUse) *ceilingJSON {
	if d.ReadCeiling == 0 && d.WriteCeiling == 0 {
		return nil
	}
	before := ceilingOf(r.Ceilings, d.Name)
	return &ceilingJSON{
		Read: d.ReadCeiling, ReadRatio: r.share(d.Name, d.ReadBytes, before.Read),
		Write: d.WriteCeiling, WriteRatio: r.share(d.Name, d.WriteBytes, before.Write),
	}
}
