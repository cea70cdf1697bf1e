package emit

// Slow returns how many slow windows are remembered.
func (d *Durations) Slow() int { return len(d.slow.list) }
