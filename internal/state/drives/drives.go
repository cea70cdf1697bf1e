// Package drives assesses the health of the machine's drives, from what they report and from how their error counts
// grow. The history is one state file next to the baselines. It only holds what can be learned again.
package drives

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/smart"
)

type (
	// Drive is what a drive reports, and its status.
	Drive = sample.Drive
	// Options are the smartctl to run and the disks to read.
	Options = smart.Options
	// Disk is a configured disk.
	Disk = smart.Disk
	// Listing is the disks of the machine.
	Listing = smart.Listing
)

// Problem is why drives could not be read.
type Problem struct {
	Missing bool // smartctl is not installed
	Why     error
}

// ReadAll reads all drives of the machine once; see smart.Source.Round.
func ReadAll(ctx context.Context, o Options) ([]Drive, *Problem, error) {
	source, err := smart.New(o)
	if err != nil {
		return nil, nil, err
	}
	all, err := source.Round(ctx)
	if err != nil {
		return all, &Problem{Missing: errors.Is(err, smart.ErrMissing), Why: err}, nil
	}
	return all, nil, nil
}

// Parse reads the output of smartctl --json and assesses the drive without a history. name is the output's name in
// errors.
func Parse(text []byte, name string) (Drive, error) {
	d, err := smart.Parse(text)
	if err != nil {
		return d, fmt.Errorf("%s: %w", name, err)
	}
	d.At = time.Now().Round(0)
	assess(&d, nil, d.At)
	return d, nil
}

// ParseDisk returns the disk that a user names: sda, /dev/sda or a link below /dev. kind is smartctl's --device, or "".
func ParseDisk(device, kind string) (Disk, error) {
	d := Disk{Device: device, Type: kind}
	if !strings.HasPrefix(device, "/") {
		d.Device = "/dev/" + device
	}
	return d, d.Check()
}

// NoDisk returns the error for a machine without disks to read.
func NoDisk() error { return smart.ErrNoDisk }

// DefaultPath returns the path of the history next to a file of baselines.
func DefaultPath(baselines string) string {
	if baselines == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(baselines), "drives.json")
}

// Boot returns the machine's boot ID, or "" if it cannot be read.
func Boot(root string) string {
	text, _ := os.ReadFile(filepath.Join("/", root, "proc/sys/kernel/random/boot_id"))
	return strings.TrimSpace(string(text[:min(len(text), 64)]))
}

// severity orders statuses, the worst first.
var severity = []sample.DriveStatus{
	sample.DriveVanished, sample.DriveFailed, sample.DriveFailing, sample.DriveDegraded, sample.DriveUnread,
	sample.DriveAsleep, sample.DriveOK,
}

// Sort sorts drives by status, the worst first, then by name.
func Sort(all []sample.Drive) {
	slices.SortStableFunc(all, func(a, b sample.Drive) int {
		return cmp.Or(cmp.Compare(slices.Index(severity, a.Status), slices.Index(severity, b.Status)),
			cmp.Compare(len(a.Device), len(b.Device)), cmp.Compare(a.Device, b.Device), cmp.Compare(a.Type, b.Type))
	})
}

// NeedsAction reports whether an operator must act soon: the drive is failing, has failed or vanished.
func NeedsAction(s sample.DriveStatus) bool {
	return s == sample.DriveVanished || s == sample.DriveFailed || s == sample.DriveFailing
}

// Unread reports whether the drive's health is unknown.
func Unread(s sample.DriveStatus) bool { return s == sample.DriveUnread }

// nameOf returns a drive's name in a sentence.
func nameOf(d *sample.Drive) string {
	switch {
	case d.Device == "":
		return cmp.Or(d.Model, "the drive")
	case d.Type != "" && strings.Contains(d.Type, ","):
		return fmt.Sprintf("%s (%s)", d.Device, d.Type)
	}
	return d.Device
}
