package sample

import "time"

// Drive is what a drive says of its own health (SMART), about every ten minutes. What it does not say is absent.
type Drive struct {
	ID       string    `json:"id"`               // hw.id: WWN or EUI, else model and serial
	Device   string    `json:"device"`           // system.device.name: "sda", "nvme0n1"
	Model    string    `json:"model,omitempty"`  //
	Serial   string    `json:"serial,omitempty"` //
	Firmware string    `json:"firmware,omitempty"`
	Protocol string    `json:"protocol,omitempty"` // "ATA", "NVMe", "SCSI"
	Type     string    `json:"type,omitempty"`     // how it is reached, where that had to be named: "sat+megaraid,3"
	Rotates  bool      `json:"rotates,omitempty"`  // a spinning disk
	Size     uint64    `json:"size,omitempty"`     // bytes
	At       time.Time `json:"at"`                 // when it was asked; of a drive that vanished or sleeps, when it answered last

	Values DriveValues `json:"values"`

	Assessment  DriveAssessment `json:"assessment,omitempty"`   // the drive's own word
	AtThreshold []string        `json:"at_threshold,omitempty"` // ATA attributes that warn of a failure and are at their vendor's threshold now; never changed once given
	HotAt       []string        `json:"hot_at,omitempty"`       // those of temperature that warn of none and are at it now; likewise
	AgedAt      []string        `json:"aged_at,omitempty"`      // all others that warn of none (use and age) and are at it now; likewise
	WasAt       []string        `json:"was_at,omitempty"`       // ATA attributes that were at it in the past and are not now; likewise
	SelfTest    string          `json:"self_test,omitempty"`    // how its last self-test failed, in smartctl's words; "" where it did not or is not told
	ASC         uint8           `json:"asc,omitempty"`          // SCSI: the additional sense code of what it reports of itself; 0 where it reports nothing
	ASCQ        uint8           `json:"ascq,omitempty"`         // SCSI: its qualifier
	Exception   string          `json:"exception,omitempty"`    // SCSI: both in smartctl's words
	Exit        uint8           `json:"exit,omitempty"`         // smartctl's exit code: bits (smartctl(8), EXIT STATUS)
	Silent      bool            `json:"silent,omitempty"`       // it did not answer in time; Err says so too

	Status  DriveStatus `json:"status,omitempty"`  // "" of a drive that was read and not judged yet
	Finding string      `json:"finding,omitempty"` // one sentence
	Remedy  string      `json:"remedy,omitempty"`  // one sentence
	Err     string      `json:"err,omitempty"`     // why it could not be read, and what to do; then Status is DriveUnread
}

// DriveAssessment is the overall result of a drive's self-assessment. What it does not tell is "".
type DriveAssessment string

const (
	DrivePassed DriveAssessment = "passed"
	DriveFails  DriveAssessment = "failed" // of an NVMe drive: a bit of its critical warning is set; of a SCSI drive: ASC is not 0
)

// DriveStatus is how a drive is, by its own word and by published evidence on its counters.
type DriveStatus string

const (
	DriveOK       DriveStatus = "ok"
	DriveDegraded DriveStatus = "degraded"          // something to look at: cable, heat, wear, a few bad sectors that do not grow
	DriveFailing  DriveStatus = "predicted_failure" // copy what is on it
	DriveFailed   DriveStatus = "failed"            // its own assessment says so, or it does not answer any more
	DriveVanished DriveStatus = "vanished"          // it was there, and the machine lists it no more
	DriveAsleep   DriveStatus = "standby"           // it was not woken up; the rest is as of At
	DriveUnread   DriveStatus = "unread"            // not permitted, unknown device, no smartctl: Err says; or it tells nothing of its health: Finding says
)

// DriveQuantity is something that a drive may tell.
type DriveQuantity uint8

// Counts are the raw values of the drive's whole life, unless it says otherwise.
const (
	DriveTemperature      DriveQuantity = iota // degrees Celsius
	DriveTemperatureLimit                      // degrees Celsius at which the drive says that it is too hot
	DrivePowerOn                               // seconds
	DrivePowerCycles                           // count
	DriveWear                                  // ratio of the rated writes that are used up; may be above 1
	DriveSpare                                 // ratio of the spare blocks that are left (NVMe)
	DriveSpareLeast                            // ratio below which the drive warns (NVMe)
	DriveCritical                              // the NVMe critical warning's bits

	DriveReallocated           // sectors (ATA 5; SCSI: grown defects)
	DrivePending               // sectors (ATA 197)
	DriveOfflineUncorrectable  // sectors (ATA 198)
	DriveReportedUncorrectable // errors (ATA 187; SCSI: uncorrected errors of reads, writes and verifies)
	DriveCommandTimeouts       // commands (ATA 188)
	DriveCRCErrors             // of the link (ATA 199)
	DriveMediaErrors           // NVMe media and data integrity errors

	DriveRead    // bytes in its life
	DriveWritten // bytes in its life

	// Degrees Celsius at the sensors of an NVMe drive, beside the temperature that it makes of them. Where they are is the
	// maker's secret.
	DriveSensor1
	DriveSensor2
	DriveSensor3
	DriveSensor4
	DriveSensor5
	DriveSensor6
	DriveSensor7
	DriveSensor8

	DriveQuantities // how many there are
)

// driveWords name the quantities in recordings.
var driveWords = [DriveQuantities]string{
	"temperature", "temperature_limit", "power_on", "power_cycles", "wear", "spare", "spare_least", "critical",
	"reallocated", "pending", "offline_uncorrectable", "reported_uncorrectable", "command_timeouts", "crc_errors", "media_errors",
	"read", "written",
	"sensor_1", "sensor_2", "sensor_3", "sensor_4", "sensor_5", "sensor_6", "sensor_7", "sensor_8",
}

func (q DriveQuantity) String() string {
	if q >= DriveQuantities {
		return ""
	}
	return driveWords[q]
}

// DriveValues is what a drive tells.
type DriveValues = Values[DriveQuantity]
