package monitor

import (
	"errors"
	"fmt"

	"github.com/stallspan/stallspan/internal/drives"
)

// Smart is what a user says of how drives are asked for their health. The zero value is of one who says nothing: they are
// asked where there is a smartctl.
type Smart struct {
	Given    bool // something is said of it: then a smartctl that is missing is a problem
	Off      bool
	Smartctl string // its path; "" looks in PATH and where it usually lies
	Sudo     bool
	Disks    []SmartDisk // what is to be asked otherwise than by itself
}

// SmartDisk is what is said of one disk.
type SmartDisk = drives.Disk

// Check says what cannot be used.
func (s *Smart) Check() error {
	for i, d := range s.Disks {
		if err := CheckDisk(d); err != nil {
			return fmt.Errorf("disks::%d: %w", i, err)
		}
	}
	return nil
}

// CheckDisk says what is wrong with what is said of one disk.
func CheckDisk(d SmartDisk) error {
	if d.Device == "" {
		return errors.New("a disk has a device, like /dev/sda")
	}
	return d.Check()
}

// Drives is what a monitor is told, nil where drives are left alone. Their history lies beside the baselines, of which slow
// names the file.
func (s *Smart) Drives(slow Slow) *Drives {
	if s.Off {
		return nil
	}
	return &Drives{
		Ask:     drives.Options{Smartctl: s.Smartctl, Sudo: s.Sudo, Disks: s.Disks},
		History: slow.drives(), Auto: !s.Given,
	}
}

// drives is the file of the drives' history, "" for none.
func (s Slow) drives() string {
	if !s.kept() {
		return ""
	}
	return drives.DefaultPath(s.Baseline)
}
