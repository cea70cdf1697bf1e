// Package drives assesses the health of the machine's drives, from what they report and from how their error counts
// grow. The history is one state file next to the baselines. It only holds what can be learned again.
package drives

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
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

// Report is what `stallspan health --json` prints of a drive. Values that the drive does not report are absent.
type Report struct {
	Device   string             `json:"device,omitempty"` // "sda", "nvme0n1"
	File     string             `json:"file,omitempty"`   // of the saved answer
	Model    string             `json:"model,omitempty"`
	Serial   string             `json:"serial,omitempty"`
	Protocol string             `json:"protocol,omitempty"` // "ATA", "NVMe", "SCSI"
	Status   sample.DriveStatus `json:"status"`
	Finding  string             `json:"finding,omitempty"`
	Remedy   string             `json:"remedy,omitempty"`

	Temperature  *float64 `json:"temperature_celsius,omitempty"`
	PowerOnHours *uint64  `json:"power_on_hours,omitempty"`
	Reallocated  *uint64  `json:"reallocated_sectors,omitempty"` // of SCSI drives: grown defects
	Pending      *uint64  `json:"pending_sectors,omitempty"`
	Offline      *uint64  `json:"offline_uncorrectable,omitempty"`
	Reported     *uint64  `json:"reported_uncorrectable,omitempty"`
	CRC          *uint64  `json:"crc_errors,omitempty"`
	Media        *uint64  `json:"media_errors,omitempty"`
	Critical     *uint64  `json:"critical_warning,omitempty"` // bits
	Spare        *uint64  `json:"available_spare,omitempty"`  // percent
	Used         *uint64  `json:"percentage_used,omitempty"`  // percent; may be above 100
	Size         *uint64  `json:"size_bytes,omitempty"`
}

// ReportOf returns the report of an assessed drive.
func ReportOf(d *sample.Drive) Report {
	r := Report{
		Device: d.Device, File: d.File, Model: d.Model, Serial: d.Serial, Protocol: d.Protocol,
		Status: d.Status, Finding: d.Finding, Remedy: d.Remedy,
		PowerOnHours: whole(d, sample.DrivePowerOn, 1.0/3600),
		Reallocated:  whole(d, sample.DriveReallocated, 1),
		Pending:      whole(d, sample.DrivePending, 1),
		Offline:      whole(d, sample.DriveOfflineUncorrectable, 1),
		Reported:     whole(d, sample.DriveReportedUncorrectable, 1),
		CRC:          whole(d, sample.DriveCRCErrors, 1),
		Media:        whole(d, sample.DriveMediaErrors, 1),
		Critical:     whole(d, sample.DriveCritical, 1),
		Spare:        whole(d, sample.DriveSpare, 100),
		Used:         whole(d, sample.DriveWear, 100),
	}
	if t, ok := d.Values.Get(sample.DriveTemperature); ok {
		r.Temperature = &t
	}
	if d.Size > 0 {
		r.Size = &d.Size
	}
	return r
}

// whole returns a value in whole units, or nil.
func whole(d *sample.Drive, q sample.DriveQuantity, unit float64) *uint64 {
	v, ok := d.Values.Get(q)
	if !ok || v < 0 {
		return nil
	}
	n := uint64(math.Floor(v*unit + 1e-6)) // 0.29 * 100 is slightly below 29
	return &n
}
