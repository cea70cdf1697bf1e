package check

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/smart"
)

// mostDrive is for how long one drive is waited for, mostDrives for how long all are. Most tell of their health in a tenth of
// a second, some in two.
const (
	mostDrive  = 2 * time.Second
	mostDrives = 2800 * time.Millisecond
)

// health asks the drives once, and wakes none that sleeps.
func (m *machine) health(ctx context.Context) []Finding {
	f := Finding{Area: Drives, What: "disk health"}
	if m.Drives == nil {
		f.State, f.Says = Off, "The config has no disk asked for its health."
		f.Fix = "smart: {enabled: true} # in the config"
		return []Finding{f}
	}
	all, late, err := m.askDrives(ctx)
	switch {
	case late:
		f.State = Limited
		f.Says = fmt.Sprintf("The disks did not tell of their health within %v: one of them hangs, or is very slow.", mostDrives)
		f.Fix = "stallspan health # it waits for half a minute"
	case errors.Is(err, smart.ErrMissing):
		f.State = Missing
		f.Says = "smartctl is not there, so nothing is known of the health of " + disksOf(all) + "; all else goes on."
		f.Fix = install()
		if m.Drives.Smartctl != "" {
			f.Says, f.Fix = "No disk can be asked for its health: "+err.Error()+".", "name another one with smart.smartctl"
		}
	case len(all) == 0 && err != nil:
		f.State, f.Says = Missing, "No disk can be asked for its health: "+err.Error()+"."
	case len(all) == 0:
		f.State, f.Says = Off, upper(smart.ErrNoDisk.Error())+"."
	default:
		f.answers(all)
	}
	return []Finding{f}
}

// askDrives asks them all at once. late says that the answer did not come in time; what was begun ends later then.
func (m *machine) askDrives(ctx context.Context) (all []sample.Drive, late bool, err error) {
	o := *m.Drives
	o.Root, o.Timeout = m.Root, mostDrive
	source, err := smart.New(o)
	if err != nil {
		return nil, false, err
	}
	type answer struct {
		all []sample.Drive
		err error
	}
	done := make(chan answer, 1)
	go func() { // ends when its smartctl do, which are killed in time; one that hangs in the kernel is given up after 2 s more
		all, err := source.Round(ctx)
		done <- answer{all, err}
	}()
	limit := time.NewTimer(mostDrives)
	defer limit.Stop()
	select {
	case a := <-done:
		return a.all, false, a.err
	case <-limit.C:
		return nil, true, nil
	}
}

// answers says how many drives told of their health, and of the first that did not why.
func (f *Finding) answers(all []sample.Drive) {
	var read, asleep, unread []string
	why := ""
	for i := range all {
		switch d := &all[i]; d.Status {
		case sample.DriveUnread:
			unread = append(unread, d.Device)
			if why == "" {
				why = d.Device + ": " + d.Err
			}
		case sample.DriveAsleep:
			asleep = append(asleep, d.Device)
		default:
			read = append(read, d.Device)
		}
	}
	f.Details = map[string]any{"read": nonNil(read), "asleep": nonNil(asleep), "unread": nonNil(unread)}
	f.State = Seen
	f.Says = fmt.Sprintf("The health of %d of %s can be read", len(read), number(len(all), "disk", "disks"))
	if len(read) > 0 {
		f.Says += ": " + list(read)
	}
	if len(asleep) > 0 {
		f.Says += "; " + list(asleep) + " sleeps, and was not woken"
	}
	if len(unread) > 0 {
		f.State = Limited
		if len(read)+len(asleep) == 0 {
			f.State = Missing
		}
		f.Says += "; not that of " + why
		f.Fix = "stallspan health # says of each disk what it takes"
	}
	f.Says += "."
}

func disksOf(all []sample.Drive) string {
	var names []string
	for i := range all {
		names = append(names, all[i].Device)
	}
	return list(slices.Compact(names))
}

// install is the line that brings smartctl.
func install() string {
	for _, line := range []string{
		"apt-get install smartmontools", "dnf install smartmontools", "zypper install smartmontools", "pacman -S smartmontools",
		"apk add smartmontools",
	} {
		program, _, _ := strings.Cut(line, " ")
		if _, err := exec.LookPath(program); err == nil {
			return line
		}
	}
	return "install smartmontools 7.0 or later"
}

func upper(sentence string) string { return strings.ToUpper(sentence[:1]) + sentence[1:] }
