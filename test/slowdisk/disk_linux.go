package slowdisk

import "errors"

// pace tells the server whether to be slow.
func (d *Disk) pace(slow bool) error {
	o := order{Slow: slow}
	if d.Kind != Throttled {
		o.Model = model{d.Options.Delay, d.Options.Width, d.Options.BytesPerSecond}
	}
	return d.guard.do(o)
}

// Slow writes back what was written, makes all files leave the page cache, and then turns the delays and limits on. It
// fails where a file stays in the cache, as one does that a program has mapped; what the file system knows of its files
// stays in memory. Called once more, it makes the files cold again. Memory stays what it is.
func (d *Disk) Slow() error {
	if d.Kind == Memory {
		return nil
	}
	if err := d.Fast(); err != nil { // the writing back need not wait
		return err
	}
	if err := cold(d.Dir); err != nil {
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

// Fast turns the delays and limits off, for requests that come from now on.
func (d *Disk) Fast() error {
	if d.Kind == Throttled {
		return d.limit.set(0, 0)
	}
	return d.pace(false)
}

// Close unmounts, detaches and removes everything, and waits for the server's end. An error says what was still in use:
// that is out of sight then, and ends with its last user.
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
