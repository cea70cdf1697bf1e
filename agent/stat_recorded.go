package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/recording"
	"github.com/stallspan/stallspan/internal/sample"
)

// recorded shows the intervals of a recording, as fast as they can be read.
func (s *statRun) recorded(ctx context.Context, paths []string) error {
	parts, err := openParts(paths)
	defer closeParts(parts)
	if err != nil {
		return err
	}
	r := statReplay{run: s}
	for _, p := range parts {
		more, err := r.feed(ctx, p.reader)
		if err != nil {
			return fmt.Errorf("%s: %w", p.path, err)
		}
		if !more {
			break
		}
	}
	switch {
	case ctx.Err() != nil:
		return exitError{exitInterrupted, errors.New("interrupted")}
	case s.shown == 0 && r.begun:
		part := ": give a shorter one"
		if s.since.set || s.until.set {
			part = " between --since and --until"
		}
		return usagef("the recording from %s to %s has no interval of %v%s", r.first.Wall.Local().Format(time.DateTime),
			r.latest.Disks.At.Wall.Local().Format(time.DateTime), s.interval, part)
	case s.shown == 0:
		return errors.New("the recording holds no reading of disks, GPUs or cores")
	}
	if missing := s.choice.missing(r.latest.Disks.Disks); missing != "" {
		return usagef("the recording has no disk %q", missing)
	}
	return s.finish()
}

// statReplay is the newest readings of a recording, as it is read.
type statReplay struct {
	run    *statRun
	disks  sample.DiskNormalizer
	latest sample.Snapshot

	begun   bool
	first   sample.Stamp
	started bool            // before is set
	before  sample.Snapshot // the readings at the beginning of the interval
	due     time.Duration   // Stamp.Mono of its end
}

// feed reads one part. more is false if nothing of the next one is wanted.
func (r *statReplay) feed(ctx context.Context, from *recording.Reader) (more bool, err error) {
	var e recording.Entry
	for ctx.Err() == nil {
		switch err := from.Next(&e); {
		case errors.Is(err, io.EOF):
			return true, nil
		case err != nil:
			return false, err
		}
		if e.Sample != nil {
			r.disks.Normalize(e.Sample) // older versions recorded the kernel's own counters
		}
		if more, err := r.take(&e); !more || err != nil {
			return false, err
		}
	}
	return false, nil
}

// take uses an entry of the recording. more is false after the last one that is wanted.
func (r *statReplay) take(e *recording.Entry) (more bool, err error) {
	switch {
	case e.Sample != nil && e.Edge == 0:
		r.latest.Learn(e.Sample)
	case e.Mark != nil && e.Mark.Op == recording.Tick:
		return r.tick()
	}
	return true, nil
}

// tick shows an interval if it is complete.
func (r *statReplay) tick() (more bool, err error) {
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
	case s.until.before(at, r.first):
		return false, nil
	case !s.since.before(at, r.first) && s.since.set:
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

// moment is a time in a recording: a time of day of its first day, a time with its date, or a distance from its start.
type moment struct {
	set   bool
	time  time.Time
	clock bool          // time has no date
	after time.Duration // from the start, if time is zero
}

// parseMoment parses the value of a flag. "" is no moment.
func parseMoment(flag, text string) (m moment, err error) {
	if text == "" {
		return m, nil
	}
	m.set = true
	if after, ok := strings.CutPrefix(text, "+"); ok {
		if m.after, err = parseDuration(after); err != nil || m.after < 0 {
			return m, fmt.Errorf("%s %q: give seconds after the +, or a duration such as 10m", flag, text)
		}
		return m, nil
	}
	for _, layout := range []string{"15:04", time.TimeOnly} {
		if m.time, err = time.ParseInLocation(layout, text, time.Local); err == nil {
			m.clock = true
			return m, nil
		}
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateTime,
		"2006-01-02 15:04", time.DateOnly} {
		if m.time, err = time.ParseInLocation(layout, text, time.Local); err == nil {
			return m, nil
		}
	}
	return m, fmt.Errorf("%s %q: give a time: 14:05, \"2026-11-03 14:05\", 2026-11-03T14:05:00Z or +10m", flag, text)
}

// before reports whether the moment is set, and not after at. first is the first reading.
func (m *moment) before(at, first sample.Stamp) bool {
	switch {
	case !m.set:
		return false
	case m.time.IsZero():
		return at.Mono-first.Mono >= m.after
	case m.clock:
		day := first.Wall.Local()
		t := time.Date(day.Year(), day.Month(), day.Day(), m.time.Hour(), m.time.Minute(), m.time.Second(), 0, time.Local)
		if t.Before(day.Add(-time.Minute)) { // a recording over midnight
			t = t.AddDate(0, 0, 1)
		}
		return !at.Wall.Before(t)
	}
	return !at.Wall.Before(m.time)
}
