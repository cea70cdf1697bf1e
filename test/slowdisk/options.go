package slowdisk

import (
	"errors"
	"fmt"
	"time"
)

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// minSize is the minimum size of an ext4 with a journal.
const minSize = 32 * mib

// defaults are the Options of each kind. Fields that are zero here cannot be set, except for Size and ReadAhead.
var defaults = map[Kind]Options{
	Spinning:  {Delay: 10 * time.Millisecond, Width: 1},
	SATA:      {BytesPerSecond: 64 * mib},
	Parallel:  {Delay: time.Millisecond, Width: 64},
	Throttled: {IOPS: 400},
	Network:   {Delay: 2 * time.Millisecond, Width: 64},
	Memory:    {},
	Local:     {},
}

// of sets the defaults of a kind and refuses options that the kind does not have.
func (o Options) of(kind Kind) (Options, error) {
	usual, known := defaults[kind]
	if !known {
		return o, fmt.Errorf("there is no storage of kind %q", kind)
	}
	if o.Size < 0 || o.Delay < 0 || o.Width < 0 || o.BytesPerSecond < 0 || o.IOPS < 0 || o.ReadAhead < 0 {
		return o, fmt.Errorf("storage %+v: nothing of it may be negative", o)
	}
	slow := o.Delay > 0 || o.Width > 0 || o.BytesPerSecond > 0
	switch {
	case (kind == Memory || kind == Local) && (slow || o.IOPS > 0 || o.ReadAhead > 0):
		return o, fmt.Errorf("%s storage is as fast as it is: only its Size can be chosen", kind)
	case kind == Throttled && (o.Delay > 0 || o.Width > 0):
		return o, errors.New("throttled storage has IOPS and BytesPerSecond, but no Delay and no Width")
	case kind != Throttled && o.IOPS > 0:
		return o, fmt.Errorf("%s storage has no IOPS: choose Delay and Width", kind)
	}
	if o.Size == 0 {
		o.Size = gib
	}
	if o.Size < minSize {
		return o, fmt.Errorf("storage of %d bytes is too small for a file system: at least %d", o.Size, minSize)
	}
	if o.ReadAhead == 0 {
		o.ReadAhead = 128 * kib
	}
	if o.Delay == 0 {
		o.Delay = usual.Delay
	}
	if o.Width == 0 {
		o.Width = usual.Width
	}
	if kind == Throttled && o.BytesPerSecond == 0 && o.IOPS == 0 {
		o.IOPS = usual.IOPS
	}
	if o.BytesPerSecond == 0 {
		o.BytesPerSecond = usual.BytesPerSecond
	}
	return o, nil
}
