package monitor

import (
	"context"
	"errors"
	"time"

	"github.com/stallspan/stallspan/internal/config"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/smart"
	"github.com/stallspan/stallspan/internal/state/drives"
)

// Drives configures the health checks of the machine's drives.
type Drives struct {
	Ask     drives.Options // its Root is Config.Root
	History string         // the file of the drives' error counts; "" keeps them in memory
	Auto    bool           // not configured by the user: a missing smartctl is no problem
}

// NewDrives returns how drives are read as the user configured, or nil for not at all. Their history is in a file next
// to the baselines.
func NewDrives(s *config.Smart, slow config.Slow) *Drives {
	if !s.On() {
		return nil
	}
	return &Drives{Ask: s.Options(), History: drivesFile(slow), Auto: s == nil}
}

// drivesFile returns the file of the drives' history, or "" for none.
func drivesFile(slow config.Slow) string {
	if !slow.HasBaseline() {
		return ""
	}
	return drives.DefaultPath(slow.Baseline)
}

// driveHealth reads the drives on a goroutine of its own: they take seconds to respond, and some hang.
type driveHealth struct {
	config  Drives
	stream  sample.Stream
	boot    string
	history *drives.History // opened by the goroutine: its disk may hang
	ended   chan struct{}   // closed when the goroutine ends
}

// drivesStopTime is how long wait waits: a round that is cancelled kills its smartctl, and gives up on one that hangs
// after 2 s.
const drivesStopTime = 5 * time.Second

// newDriveHealth returns nil if drives are not checked.
func newDriveHealth(c Config) (*driveHealth, error) {
	if c.Drives == nil {
		return nil, nil
	}
	d := &driveHealth{config: *c.Drives, boot: drives.Boot(c.Root), ended: make(chan struct{})}
	d.config.Ask.Root = c.Root
	source, err := smart.New(d.config.Ask)
	if err != nil {
		return nil, err
	}
	d.stream = source
	return d, nil
}

func (d *driveHealth) start(ctx context.Context, m *Monitor) {
	if d == nil {
		return
	}
	go func() { // owned by d: see wait
		defer close(d.ended)
		report := func(err error) { m.problems.Note("drives", err) }
		sample.Restart(ctx, report, func() {
			if d.history == nil {
				d.history = drives.Open(d.config.History, d.boot, report)
			}
			d.stream.Run(ctx, func(source string, s *sample.Sample, err error) { d.take(m, source, s, err) })
		})
	}()
}

// wait waits for the goroutine after its context has ended. The disk of the history file may hold it forever.
func (d *driveHealth) wait() {
	if d == nil {
		return
	}
	select {
	case <-d.ended:
	case <-time.After(drivesStopTime):
	}
}

// take judges a reading by the history of the drives, and passes it on.
func (d *driveHealth) take(m *Monitor, source string, s *sample.Sample, err error) {
	if errors.Is(err, smart.ErrMissing) && d.config.Auto {
		return
	}
	if err != nil && len(s.Drives) == 0 {
		m.problems.Note(source, err)
		return // they could not be listed, so none has vanished
	}
	s.Drives = d.history.Update(s.Drives, d.config.Ask.Listing(), time.Now())
	m.readings.Append(source, s, err)
}
