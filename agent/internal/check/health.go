package check

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/agent/internal/output"
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/smart"
)

// Most drives answer in a tenth of a second, some in two.
const (
	maxDrive  = 2 * time.Second         // wait for one drive
	maxDrives = 2800 * time.Millisecond // wait for all drives
)

// health reads the drives' health once, and wakes none that sleeps.
func (m *machine) health(ctx context.Context) []Finding {
	f := Finding{Area: Drives, What: "disk health"}
	if m.Drives == nil {
		return f.as(Off, "smart: {enabled: true} # in the config", "The config turns disk health off.")
	}
	all, late, err := m.readDrives(ctx)
	var names []string
	for i := range all {
		names = append(names, all[i].Device)
	}
	switch {
	case late:
		return f.as(Limited, "stallspan health # waits for half a minute",
			"The disks did not report their health within %v: one of them hangs, or is very slow.", maxDrives)
	case errors.Is(err, smart.ErrMissing) && m.Drives.Smartctl != "":
		return f.as(Missing, "set smart.smartctl to the right path", "The disks' health cannot be read: %v.", err)
	case errors.Is(err, smart.ErrMissing):
		return f.as(Missing, install(), "smartctl is not installed, so the health of %s is unknown; everything else works.",
			list(slices.Compact(names)))
	case len(all) == 0 && err != nil:
		return f.as(Missing, "", "The disks' health cannot be read: %v.", err)
	case len(all) == 0:
		return f.as(Off, "", "%s.", upper(smart.ErrNoDisk.Error()))
	}
	f.drives(all)
	return []Finding{f}
}

// readDrives reads all drives in parallel. late is set if they took too long; the reads then end later.
func (m *machine) readDrives(ctx context.Context) (all []sample.Drive, late bool, err error) {
	o := *m.Drives
	o.Root, o.Timeout = m.Root, maxDrive
	source, err := smart.New(o)
	if err != nil {
		return nil, false, err
	}
	type answer struct {
		all []sample.Drive
		err error
	}
	done := make(chan answer, 1)
	go func() { // ends when its smartctl processes do, which are killed in time, or 2 s after that
		all, err := source.Round(ctx)
		done <- answer{all, err}
	}()
	limit := time.NewTimer(maxDrives)
	defer limit.Stop()
	select {
	case a := <-done:
		return a.all, false, a.err
	case <-limit.C:
		return nil, true, nil
	}
}

// drives counts the drives that report their health, with the error of the first that does not.
func (f *Finding) drives(all []sample.Drive) {
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
	f.Message = fmt.Sprintf("The health of %d of %s can be read", len(read), output.Count(len(all), "disk"))
	if len(read) > 0 {
		f.Message += ": " + list(read)
	}
	if len(asleep) > 0 {
		f.Message += "; " + list(asleep) + " sleeps and was not woken"
	}
	if len(unread) > 0 {
		f.State = Limited
		if len(read)+len(asleep) == 0 {
			f.State = Missing
		}
		f.Message += "; not of " + why
		f.Fix = "stallspan health # shows a remedy for each disk"
	}
	f.Message += "."
}

// install is the command that installs smartctl.
func install() string {
	for _, line := range []string{
		"apt-get install smartmontools", "dnf install smartmontools", "zypper install smartmontools",
		"pacman -S smartmontools",
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
