package history

// EachDisk tells of each leaf disk that is there what it read, what it moved in all (bytes), and how its weighted time grew
// (seconds) between two moments.
func (h *History) EachDisk(from, to Point, tell func(disk string, read, moved, weighted float64)) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	a := &h.axes[diskAxis]
	for key, g := range a.groups {
		if key.kind != kindDisk || g.gone {
			continue
		}
		grown := func(s Series) float64 {
			c := &g.columns[s.index()]
			start, okStart := a.level(s, c, from)
			end, okEnd := a.level(s, c, to)
			if !okStart || !okEnd {
				return 0
			}
			return max(0, end.value-start.value)
		}
		read := grown(DiskReadBytes)
		tell(key.id, read, read+grown(DiskWriteBytes), grown(DiskTimeInQueue))
	}
}
