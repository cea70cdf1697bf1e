package history

// EachDisk yields, for each present leaf disk, the bytes that it read, the bytes that it read and wrote, and the growth
// of its time in queue (seconds) between two points.
func (h *History) EachDisk(from, to Point, yield func(disk string, read, moved, inQueue float64)) {
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
		yield(key.id, read, read+grown(DiskWriteBytes), grown(DiskTimeInQueue))
	}
}
