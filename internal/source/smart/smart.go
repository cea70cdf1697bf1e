// Package smart asks the machine's drives for their health, by way of smartctl (smartmontools 7.0 or later).
//
// A drive that sleeps is not woken, and a drive that hangs keeps no other waiting: all are asked at once, each by a
// smartctl of its own, which is killed with its process group when its time is over. One that hangs in the kernel cannot be
// killed. It is left alone, its drive is told as silent, and is not asked again until it has ended.
package smart

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Options says which smartctl is asked for which disks. The zero value is for this machine's own.
type Options struct {
	Smartctl string        // its path; "" looks in PATH and where it usually lies
	Sudo     bool          // have sudo run it: docs/health.md has the lines that allow it
	Root     string        // the folder that is the machine's "/", where /sys is looked for; the devices are always below /dev
	Disks    []Disk        // what is to be asked otherwise than by itself
	Only     bool          // ask Disks alone
	Every    time.Duration // between two rounds; 0 means 10 minutes
	Timeout  time.Duration // for one disk; 0 means 30 s
}

// sourceName is the name that a sink is given.
const sourceName = "smart"

// mostAtOnce bounds how many smartctl run at once, those apart that hang in the kernel.
const mostAtOnce = 32

// Source is a sample.Stream of all drives of this machine. Its readings have no time axis: each is of a round of questions.
type Source struct {
	options Options

	mu     sync.Mutex
	asking map[string]time.Time // the disks whose smartctl has not ended, and since when
}

var _ sample.Stream = (*Source)(nil)

// New prepares a source and touches nothing. The error is of a config that cannot be.
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
	return &Source{options: o, asking: map[string]time.Time{}}, nil
}

// Run implements sample.Stream: a round at once, and then one each Options.Every. The error beside a reading says which
// drives could not be read, and why. A machine without drives is told once.
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

// CatchUp implements sample.Stream. Nobody waits for a drive's health.
func (s *Source) CatchUp(context.Context) {}

// Round asks all drives once and gives them in the order of their names. It takes Options.Timeout at most, and three
// seconds more where drives hang. The error is ErrMissing where there is no smartctl, and otherwise of the drives that
// could not be read, which are in the list too, and of a list of disks that is not complete.
func (s *Source) Round(ctx context.Context) ([]sample.Drive, error) {
	list, listing := s.options.targets()
	if len(list) == 0 {
		return nil, listing
	}
	path, err := find(s.options.Smartctl, usual)
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
	slots := make(chan struct{}, mostAtOnce)
	var all sync.WaitGroup
	for i := range list {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			drives[i] = s.one(ctx, path, &list[i])
			drives[i].At = time.Now().Round(0)
		})
	}
	all.Wait()
}

// one asks a disk and waits no longer than it may take.
func (s *Source) one(ctx context.Context, path string, t *target) sample.Drive {
	if t.suspended {
		return t.complete(sample.Drive{Status: sample.DriveAsleep})
	}
	key := t.path + " " + t.kind
	if since, still := s.begin(key); still {
		d := silent(t, s.options.Timeout)
		d.Err = fmt.Sprintf("smartctl has not ended since %s, nor can it be killed: the disk, its cable or its controller hangs",
			since.Format(time.DateTime))
		return d
	}
	done := make(chan sample.Drive, 1)
	go func() { // owned by asking: it ends when smartctl does, which the kernel may put off for ever
		d := s.ask(ctx, path, t)
		s.end(key)
		done <- d
	}()
	limit := time.NewTimer(s.options.Timeout + giveUp)
	defer limit.Stop()
	select {
	case d := <-done:
		return d
	case <-limit.C:
		return silent(t, s.options.Timeout)
	case <-ctx.Done():
	}
	left := time.NewTimer(giveUp)
	defer left.Stop()
	select {
	case d := <-done:
		return d
	case <-left.C:
		return silent(t, s.options.Timeout)
	}
}

// begin notes that a disk is being asked, or says since when it is.
func (s *Source) begin(key string) (since time.Time, still bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if since, still = s.asking[key]; !still {
		s.asking[key] = time.Now()
	}
	return since, still
}

func (s *Source) end(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.asking, key)
}
