package slowdisk

import "errors"

// pace switches the server's delays on or off.
func (d *Disk) pace(slow bool) error {
	o := order{Slow: slow}
	if d.Kind != Throttled {
		o.Model = model{d.Options.Delay, d.Options.Width, d.Options.BytesPerSecond}
	}
	return d.guard.do(o)
}

// Slow writes back dirty pages, drops all files from the page cache, and then switches the delays and limits on. It
// fails if a file stays in the cache, for example because a process has mapped it; metadata stays in memory. A second
// call makes the files cold again. It has no effect on Memory.
func (d *Disk) Slow() error {
	if d.Kind == Memory {
		return nil
	}
	if err := d.Fast(); err != nil { // writing back at full speed
		return err
	}
	if err := Cold(d.Dir); err != nil {
		return err
	}
	switch d.Kind {
	case Local:
		return nil
	case Throttled:
		return d.limit.set(d.Options.IOPS, d.Options.BytesPerSecond)
	}
	return d.pace(true)
}

// Fast switches the delays and limits off for new requests.
func (d *Disk) Fast() error {
	if d.Kind == Throttled {
		return d.limit.set(0, 0)
	}
	return d.pace(false)
}

// Close unmounts, detaches and removes everything, and waits for the server to end. An error names what was still in
// use: it is detached and ends with its last user.
func (d *Disk) Close() error {
	if d.guard == nil {
		return undo(d.base, patience)
	}
	fast := error(nil)
	if d.limit.group != "" || d.Kind != Throttled {
		fast = d.Fast()
	}
	return errors.Join(fast, undo(d.base, patience), d.guard.stop())
}
