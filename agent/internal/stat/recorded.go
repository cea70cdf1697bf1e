package stat

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/stallspan/stallspan/agent/internal/cli"
	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/agent/internal/recorded"
	"github.com/stallspan/stallspan/internal/monitor"
	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
)

// recorded shows the intervals of a recording, as fast as they can be read.
func (s *printer) recorded(ctx context.Context, paths []string) error {
	parts, err := recorded.Open(paths)
	defer recorded.Close(parts)
	if err != nil {
		return err
	}
	r := recordedMachine{run: s}
	next := recorded.Entries(parts)
	var e recording.Entry
	for more := true; more && ctx.Err() == nil; {
		if err = next(&e); err == nil {
			more, err = r.take(&e)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	switch {
	case ctx.Err() != nil:
		return cli.ExitError{Code: cli.ExitInterrupted, Err: errors.New("interrupted")}
	case s.shown == 0 && r.begun:
		part := ": give a shorter one"
		if s.since.Set || s.until.Set {
			part = " between --since and --until"
		}
		return cli.Usagef("the recording from %s to %s has no interval of %v%s", r.first.Wall.Local().Format(time.DateTime),
			r.latest.Disks.At.Wall.Local().Format(time.DateTime), s.interval, part)
	case s.shown == 0:
		return errors.New("the recording holds no reading of disks, GPUs or cores")
	}
	if missing := s.choice.missing(r.latest.Disks.Disks); missing != "" {
		return cli.Usagef("the recording has no disk %q", missing)
	}
	return s.finish()
}

// recordedMachine is the newest readings of a recording, as it is read.
type recordedMachine struct {
	run    *printer
	latest sample.Snapshot

	begun   bool
	first   sample.Stamp
	started bool            // before is set
	before  sample.Snapshot // the readings at the beginning of the interval
	due     time.Duration   // Stamp.Mono of its end
}

// take uses an entry of the recording. more is false after the last one that is wanted.
func (r *recordedMachine) take(e *recording.Entry) (more bool, err error) {
	switch {
	case e.Sample != nil && e.Edge == 0:
		r.latest.Learn(e.Sample)
	case e.Mark != nil && e.Mark.Op == recording.Tick:
		return r.tick()
	}
	return true, nil
}

// tick shows an interval if it is complete.
func (r *recordedMachine) tick() (more bool, err error) {
	at := r.latest.Disks.At
	if at.Mono == 0 {
		at = r.latest.Cores.At
	}
	if at.Mono == 0 {
		return true, nil
	}
	if !r.begun {
		r.begun, r.first = true, at
	}
	switch s := r.run; {
	case s.until.Before(at, r.first):
		return false, nil
	case !s.since.Before(at, r.first) && s.since.Set:
		return true, nil
	case !r.started:
		r.started, r.before, r.due = true, r.latest.Clone(), at.Mono+s.interval
	case at.Mono >= r.due:
		after := r.latest.Clone()
		late := at.Mono - r.due
		r.due += late - late%s.interval + s.interval // as pace does
		more, err := s.show(&r.before, &after)
		r.before = after
		return more, err
	}
	return true, nil
}

// Devices summarizes the devices of a recording by the second, from the entries that pass it. It is safe for
// concurrent use.
type Devices struct {
	to monitor.Journal // nil for none

	mu     sync.Mutex
	replay recordedMachine
	totals summary
}

// NewDevices sums up what it passes on to another journal. That may be nil.
func NewDevices(to monitor.Journal) *Devices {
	d := &Devices{to: to}
	d.replay.run = &printer{interval: time.Second, out: io.Discard, print: d.totals.print}
	return d
}

// Write is of monitor.Journal.
func (d *Devices) Write(e *recording.Entry) error {
	d.mu.Lock()
	_, _ = d.replay.take(e) // it writes nothing that could fail
	d.mu.Unlock()
	if d.to == nil {
		return nil
	}
	return d.to.Write(e)
}

// Print writes the table, and the problems below it.
func (d *Devices) Print(out io.Writer, problems []error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.totals.intervals == 0 && d.replay.started { // less than a second
		_, _ = d.replay.run.show(&d.replay.before, &d.replay.latest)
	}
	return output.WriteTable(out, func(t *output.Table) {
		t.Line("")
		d.totals.draw(t)
		for _, p := range problems {
			t.Text("Warning: ", p.Error())
		}
	})
}
