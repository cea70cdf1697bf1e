package lend

import "github.com/stallspan/stallspan/internal/source/schedule"

// Scheduler returns an Opener of the kernel's events.
func Scheduler(from schedule.Opener) Opener {
	return func(owner *Owner) (Source, error) {
		s, err := schedule.NewFrom(from, (*schedule.Owner)(owner))
		if err != nil {
			return nil, err // not a nil *Source
		}
		return s, nil
	}
}
