package drives

import (
	"math"

	"github.com/stallspan/stallspan/internal/sample"
)

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
