// Package smart reads the health of the machine's drives through smartctl (smartmontools 7.0 or later).
//
// A sleeping drive is not woken. A drive that hangs does not delay the others: each is read by a smartctl of its own,
// which is killed with its process group after a timeout. A smartctl that hangs in the kernel cannot be killed. Its
// drive is reported as silent, and is not read again until that smartctl has ended.
package smart

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Options are the smartctl to run and the disks to read. The zero value reads the machine's own disks.
type Options struct {
	Smartctl string        // path; "" searches PATH and the usual folders
	Sudo     bool          // run smartctl with sudo: docs/health.md has the sudoers lines
	Root     string        // folder that stands for "/" when /sys is read; devices are always below /dev
	Disks    []Disk        // configured disks
	Only     bool          // read Disks only
	Every    time.Duration // between two rounds; 0 for 10 minutes
	Timeout  time.Duration // for one disk; 0 for 30 s
}

// sourceName is the source's name in the sink.
const sourceName = "smart"

// maxConcurrent bounds the smartctl processes at one time, without those that hang in the kernel.
const maxConcurrent = 32

// Source is a sample.Stream of all drives of this machine. Each sample is one round.
type Source struct {
	options Options
	running sync.Map // time.Time at which each smartctl began that has not ended, by disk
}

var _ sample.Stream = (*Source)(nil)

// New prepares a source. Its only error is about the options.
func New(o Options) (*Source, error) {
	for _, d := range o.Disks {
		if err := d.Check(); err != nil {
			return nil, err
		}
	}
	if o.Every <= 0 {
		o.Every = 10 * time.Minute
	}
	if o.Timeout <= 0 {
		o.Timeout = 30 * time.Second
	}
	return &Source{options: o}, nil
}

// Run implements sample.Stream: a round at once, and one every Options.Every. The error next to a sample is which
// drives could not be read, and why.
func (s *Source) Run(ctx context.Context, sink sample.Sink) {
	ticker := time.NewTicker(s.options.Every)
	defer ticker.Stop()
	for ctx.Err() == nil {
		drives, err := s.Round(ctx)
		if ctx.Err() == nil {
			sink(sourceName, &sample.Sample{At: sample.Now(), Drives: drives}, err)
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// CatchUp implements sample.Stream. It returns at once: no window depends on drive health.
func (s *Source) CatchUp(context.Context) {}

// Round reads all drives once and returns them sorted by name. It takes Options.Timeout at most, and three seconds more
// if drives hang. The error is ErrMissing without smartctl. Otherwise it is about drives that could not be read, which
// are in the list as well, and about an incomplete list of disks.
func (s *Source) Round(ctx context.Context) ([]sample.Drive, error) {
	list, listing := s.options.targets()
	if len(list) == 0 {
		return nil, listing
	}
	path, err := trustedSmartctl(s.options.Smartctl)
	drives := make([]sample.Drive, len(list))
	if err != nil {
		for i := range list {
			drives[i] = unread(&list[i], err.Error())
			drives[i].At = time.Now().Round(0)
		}
		return drives, err
	}
	s.round(ctx, path, list, drives)
	var problems sample.Problems
	problems.Add(listing)
	for i := range drives {
		if d := &drives[i]; d.Status == sample.DriveUnread {
			problems.Add(fmt.Errorf("%s: %s", d.Device, d.Err))
		}
	}
	return drives, problems.Err()
}

func (s *Source) round(ctx context.Context, path string, list []target, drives []sample.Drive) {
	slots := make(chan struct{}, maxConcurrent)
	var all sync.WaitGroup
	for i := range list {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			if err := sample.Protect(func() { drives[i] = s.readOne(ctx, path, &list[i]) }); err != nil {
				drives[i] = unread(&list[i], err.Error())
			}
			drives[i].At = time.Now().Round(0)
		})
	}
	all.Wait()
}

// readOne reads a disk and returns after the timeout at the latest.
func (s *Source) readOne(ctx context.Context, path string, t *target) sample.Drive {
	if t.suspended {
		return t.complete(sample.Drive{Status: sample.DriveAsleep})
	}
	key := t.path + " " + t.kind
	if since, still := s.running.LoadOrStore(key, time.Now()); still {
		began, _ := since.(time.Time)
		d := noResponse(t, s.options.Timeout)
		d.Err = fmt.Sprintf("smartctl has not ended since %s, and cannot be killed: "+
			"the disk, its cable or its controller hangs", began.Format(time.DateTime))
		return d
	}
	done := make(chan sample.Drive, 1)
	go func() { // tracked in running: it ends when smartctl does, which may never happen
		var d sample.Drive
		if err := sample.Protect(func() { d = s.run(ctx, path, t) }); err != nil {
			d = unread(t, err.Error())
		}
		s.running.Delete(key)
		done <- d
	}()
	select {
	case d := <-done:
		return d
	case <-time.After(s.options.Timeout + killWait):
	case <-ctx.Done():
		select {
		case d := <-done:
			return d
		case <-time.After(killWait):
		}
	}
	return noResponse(t, s.options.Timeout)
}
