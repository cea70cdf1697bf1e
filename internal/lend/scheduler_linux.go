package lend

import "github.com/stallspan/stallspan/internal/source/schedule"

// Scheduler returns an Opener of the kernel's events. root is where the host's files are, "" for "/".
func Scheduler(root string) Opener {
	return func(owner *Owner) (Source, error) {
		open := schedule.New
		if owner != nil {
			open = func(root string) (*schedule.Source, error) { return schedule.NewFor(root, schedule.Owner(*owner)) }
		}
		s, err := open(root)
		if err != nil {
			return nil, err // not a nil *Source
		}
		return s, nil
	}
}
