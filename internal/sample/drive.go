package sample

import "time"

// Drive is the health of a drive (SMART), read about every ten minutes. What the drive does not report is absent.
type Drive struct {
	ID       string `json:"id"`                 // hw.id: WWN or EUI, else model and serial number
	Device   string `json:"device"`             // system.device.name: "sda", "nvme0n1"
	Model    string `json:"model,omitempty"`    //
	Serial   string `json:"serial,omitempty"`   //
	Firmware string `json:"firmware,omitempty"` //
	Protocol string `json:"protocol,omitempty"` // "ATA", "NVMe", "SCSI"
	Type     string `json:"type,omitempty"`     // smartctl's device type where it must be given: "sat+megaraid,3"
	Rotates  bool   `json:"rotates,omitempty"`  // a hard disk
	Size     uint64 `json:"size,omitempty"`     // bytes
	File     string `json:"-"`                  // of the saved answer; "" for a drive of this machine
	// At is the time of the query. For a drive that vanished or sleeps, it is the time of its last answer.
	At time.Time `json:"at"`

	Values DriveValues `json:"values"`

	Assessment DriveAssessment `json:"assessment,omitempty"` // the drive's own result
	// ATA attributes at their vendor's threshold. The slices are immutable.
	AtThreshold []string `json:"at_threshold,omitempty"` // now, and they predict a failure
	HotAt       []string `json:"hot_at,omitempty"`       // now: temperatures, which predict none
	AgedAt      []string `json:"aged_at,omitempty"`      // now: all others that predict none (use and age)
	WasAt       []string `json:"was_at,omitempty"`       // in the past, and not now
	SelfTest    string   `json:"self_test,omitempty"`    // how the last self-test failed, in smartctl's words; else ""
	ASC         uint8    `json:"asc,omitempty"`          // SCSI: additional sense code of its condition; 0 without one
	ASCQ        uint8    `json:"ascq,omitempty"`         // SCSI: additional sense code qualifier
	Exception   string   `json:"exception,omitempty"`    // SCSI: both in smartctl's words
	Exit        uint8    `json:"exit,omitempty"`         // exit status bits of smartctl(8)
	Silent      bool     `json:"silent,omitempty"`       // no answer in time; Err has the same

	Status  DriveStatus `json:"status,omitempty"`  // "" before the judgement
	Finding string      `json:"finding,omitempty"` // one sentence
	Remedy  string      `json:"remedy,omitempty"`  // one sentence
	Err     string      `json:"err,omitempty"`     // why it could not be read, and what to do; then Status is DriveUnread
}

// DriveAssessment is the overall result of a drive's self-assessment, or "" without one.
type DriveAssessment string

const (
	DrivePassed DriveAssessment = "passed"
	DriveFails  DriveAssessment = "failed" // NVMe: a bit of the critical warning is set; SCSI: ASC is not 0
)

// DriveStatus is the condition of a drive, by its own assessment and by published evidence on its counters.
type DriveStatus string

const (
	DriveOK       DriveStatus = "ok"
	DriveDegraded DriveStatus = "degraded"          // needs attention: cable, heat, wear, a few bad sectors
	DriveFailing  DriveStatus = "predicted_failure" // back up its data
	DriveFailed   DriveStatus = "failed"            // its own assessment failed, or it no longer answers
	DriveVanished DriveStatus = "vanished"          // the machine no longer lists it
	DriveAsleep   DriveStatus = "standby"           // was not woken up; all else is as of At
	// DriveUnread: not permitted, unknown device or no smartctl (see Err), or no health data (see Finding).
	DriveUnread DriveStatus = "unread"
)

// DriveQuantity is a quantity that a drive may report.
type DriveQuantity uint8

// Counts are raw values over the drive's life.
const (
	DriveTemperature      DriveQuantity = iota // degrees Celsius
	DriveTemperatureLimit                      // degrees Celsius at which the drive warns
	DrivePowerOn                               // seconds
	DrivePowerCycles                           // count
	DriveWear                                  // ratio of the rated writes that are used up; may exceed 1
	DriveSpare                                 // ratio of spare blocks that are left (NVMe)
	DriveSpareMin                              // ratio below which the drive warns (NVMe)
	DriveCritical                              // bits of the NVMe critical warning

	DriveReallocated           // sectors (ATA 5; SCSI: grown defects)
	DrivePending               // sectors (ATA 197)
	DriveOfflineUncorrectable  // sectors (ATA 198)
	DriveReportedUncorrectable // errors (ATA 187; SCSI: uncorrected errors of reads, writes and verifies)
	DriveCommandTimeouts       // commands (ATA 188)
	DriveCRCErrors             // of the link (ATA 199)
	DriveMediaErrors           // NVMe media and data integrity errors

	DriveRead    // bytes
	DriveWritten // bytes

	// Degrees Celsius at the sensors of an NVMe drive. Their places are specific to the vendor.
	DriveSensor1
	DriveSensor2
	DriveSensor3
	DriveSensor4
	DriveSensor5
	DriveSensor6
	DriveSensor7
	DriveSensor8

	DriveQuantities // number of quantities
)

// driveNames are the names in recordings.
var driveNames = [DriveQuantities]string{
	"temperature", "temperature_limit", "power_on", "power_cycles", "wear", "spare", "spare_least", "critical",
	"reallocated", "pending", "offline_uncorrectable", "reported_uncorrectable", "command_timeouts", "crc_errors",
	"media_errors", "read", "written",
	"sensor_1", "sensor_2", "sensor_3", "sensor_4", "sensor_5", "sensor_6", "sensor_7", "sensor_8",
}

func (q DriveQuantity) String() string {
	if q >= DriveQuantities {
		return ""
	}
	return driveNames[q]
}

// DriveValues holds the quantities of one drive.
type DriveValues = Values[DriveQuantity]
