package cli

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/stallspan/stallspan/internal/sample"
)

// PastFlag adds a flag that takes a moment of the past.
func PastFlag(flags *pflag.FlagSet, into *time.Time, name, usage string) {
	flags.Func(name, usage+":\nan age such as 2h or 3d, 14:05, or 2026-11-23T14:05", func(text string) (err error) {
		*into, err = parsePast(text, time.Now())
		return err
	})
}

// parsePast parses a moment of the past: an age, a time of day or a date.
func parsePast(text string, now time.Time) (time.Time, error) {
	number, isDays := strings.CutSuffix(text, "d")
	if age, err := ParseDuration(number); err == nil && !strings.ContainsAny(number, ":") {
		if isDays && !strings.ContainsAny(number, "hms") {
			age = time.Duration(age.Seconds() * float64(24*time.Hour)) // a bare number counts as seconds
		} else if isDays {
			age = -1
		}
		if age >= 0 && age < 100*365*24*time.Hour {
			return now.Add(-age), nil
		}
	}
	m, err := parseMoment(text)
	if err != nil || m.time.IsZero() {
		return now, errors.New("give an age such as 2h or 3d, 14:05, or 2026-11-23T14:05")
	}
	if !m.clock {
		return m.time, nil
	}
	day := now.Local()
	at := time.Date(day.Year(), day.Month(), day.Day(), m.time.Hour(), m.time.Minute(), m.time.Second(), 0, time.Local)
	if at.After(now) {
		at = at.AddDate(0, 0, -1)
	}
	return at, nil
}

// Moment is a time in a recording: a time of day of its first day, a time with its date, or a distance from its start.
type Moment struct {
	Set   bool
	time  time.Time
	clock bool          // time has no date
	after time.Duration // from the start, if time is zero
}

// MomentFlag adds a flag that takes a time in a recording.
func MomentFlag(flags *pflag.FlagSet, into *Moment, name, usage string) {
	flags.Func(name, usage, func(text string) (err error) {
		*into, err = parseMoment(text)
		return err
	})
}

// parseMoment parses the value of a flag. "" is no moment.
func parseMoment(text string) (m Moment, err error) {
	if text == "" {
		return m, nil
	}
	m.Set = true
	if after, ok := strings.CutPrefix(text, "+"); ok {
		if m.after, err = ParseDuration(after); err != nil || m.after < 0 {
			return m, errors.New("give seconds after the +, or a duration such as 10m")
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
	return m, errors.New("give a time: 14:05, \"2026-11-03 14:05\", 2026-11-03T14:05:00Z or +10m")
}

// Before reports whether the moment is set, and not after at. first is the first reading.
func (m *Moment) Before(at, first sample.Stamp) bool {
	switch {
	case !m.Set:
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
