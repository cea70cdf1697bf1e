package cli

import (
	"errors"
	"strings"
	"time"

	"github.com/spf13/pflag"
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
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateTime,
		"2006-01-02 15:04", time.DateOnly} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, nil
		}
	}
	for _, layout := range []string{"15:04", time.TimeOnly} {
		if clock, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			day := now.Local()
			at := time.Date(day.Year(), day.Month(), day.Day(), clock.Hour(), clock.Minute(), clock.Second(), 0, time.Local)
			if at.After(now) {
				at = at.AddDate(0, 0, -1)
			}
			return at, nil
		}
	}
	return now, errors.New("give an age such as 2h or 3d, 14:05, or 2026-11-23T14:05")
}
