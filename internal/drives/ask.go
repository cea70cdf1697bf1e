package drives

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/smart"
)

type (
	// Drive is what a drive tells, and how it is.
	Drive = sample.Drive
	// Options says which smartctl is asked for which disks.
	Options = smart.Options
	// Disk is what is said of a disk that is asked otherwise than by itself.
	Disk = smart.Disk
	// Listing is which disks are there, asked or not.
	Listing = smart.Listing
)

// Problem is why drives could not be asked, or told nothing.
type Problem struct {
	Missing bool // there is no smartctl
	Why     error
}

// Ask asks all drives of the machine once, as smart.Source.Round does.
func Ask(ctx context.Context, o Options) ([]Drive, *Problem, error) {
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

// FromJSON reads what smartctl --json has printed, and judges it by what it says alone: nothing is known of how its
// counts have grown. where names it for the error.
func FromJSON(text []byte, where string) (Drive, error) {
	d, err := smart.Parse(text)
	if err != nil {
		return d, fmt.Errorf("%s: %w", where, err)
	}
	d.At = time.Now().Round(0)
	judged(&d, nil, d.At)
	return d, nil
}

// Chosen is a device as a person names it: sda, /dev/sda or a link below /dev; with a type, as smartctl's --device.
func Chosen(device, kind string) (Disk, error) {
	d := Disk{Device: device, Type: kind}
	if !strings.HasPrefix(device, "/") {
		d.Device = "/dev/" + device
	}
	return d, d.Check()
}

// NoDisk says that a machine has no disk that could be asked.
func NoDisk() error { return smart.ErrNoDisk }
