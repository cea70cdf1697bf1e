package smart

import "encoding/json"

// document is the JSON of smartctl since version 7.0. Versions before 7.2 print some SCSI names without "scsi_". The
// keys are those of smartctl's source.
type document struct {
	Format   list[number] `json:"json_format_version"`
	Smartctl struct {
		Version   list[number] `json:"version"`
		Exit      number       `json:"exit_status"`
		Arguments list[word]   `json:"argv"`
		Messages  list[struct {
			Text     sentence `json:"string"`
			Severity word     `json:"severity"` // "error", "warning", "information"
		}] `json:"messages"`
	} `json:"smartctl"`
	Device struct {
		Name     word `json:"name"`     // "/dev/sda"
		Type     word `json:"type"`     // "sat", "scsi", "nvme", "sat+megaraid,3"
		Protocol word `json:"protocol"` // "ATA", "SCSI", "NVMe"
	} `json:"device"`

	Model        word `json:"model_name"`
	SCSIModel    word `json:"scsi_model_name"`
	Vendor       word `json:"vendor"`
	SCSIVendor   word `json:"scsi_vendor"`
	Product      word `json:"product"`
	SCSIProduct  word `json:"scsi_product"`
	Serial       word `json:"serial_number"`
	Firmware     word `json:"firmware_version"`
	Revision     word `json:"revision"`
	SCSIRevision word `json:"scsi_revision"`

	WWN struct {
		NAA number `json:"naa"` // 4 bits
		OUI number `json:"oui"` // 24 bits
		ID  number `json:"id"`  // 36 bits
	} `json:"wwn"`
	LogicalUnit word   `json:"logical_unit_id"` // "0x5000c500a1b2c3d4"
	Rotation    number `json:"rotation_rate"`   // revolutions a minute; 0 for SSDs
	Capacity    struct {
		Bytes number `json:"bytes"`
	} `json:"user_capacity"`
	NVMeCapacity number `json:"nvme_total_capacity"` // bytes
	BlockSize    number `json:"logical_block_size"`  // bytes
	Namespaces   list[struct {
		EUI64 struct {
			OUI number `json:"oui"`    // 24 bits
			ID  number `json:"ext_id"` // 40 bits
		} `json:"eui64"`
	}] `json:"nvme_namespaces"`

	Status  required[assessment, object] `json:"smart_status"`
	Support struct {
		Available truth `json:"available"`
		Enabled   truth `json:"enabled"`
	} `json:"smart_support"`
	PowerMode json.RawMessage `json:"power_mode"`

	Temperature struct {
		Current  number `json:"current"`
		Trip     number `json:"drive_trip"`         // SCSI
		OpMax    number `json:"op_limit_max"`       // ATA (SCT), and NVMe since 7.5
		LimitMax number `json:"limit_max"`          // ATA (SCT)
		Critical number `json:"critical_limit_max"` // NVMe since 7.5
	} `json:"temperature"`
	PowerOn struct {
		Hours   number `json:"hours"`
		Minutes number `json:"minutes"`
	} `json:"power_on_time"`
	PowerCycles number `json:"power_cycle_count"`
	Endurance   struct {
		Used number `json:"current_percent"`
	} `json:"endurance_used"` // since 7.5
	Spare struct {
		Left  number `json:"current_percent"`
		Least number `json:"threshold_percent"`
	} `json:"spare_available"` // since 7.5

	Attributes required[attributes, object] `json:"ata_smart_attributes"`
	Statistics struct {
		Pages list[struct {
			Table list[statistic] `json:"table"`
		}] `json:"pages"`
	} `json:"ata_device_statistics"`

	NVMe nvmeLog `json:"nvme_smart_health_information_log"`

	ATATests struct {
		Extended ataTests `json:"extended"`
		Standard ataTests `json:"standard"`
	} `json:"ata_smart_self_test_log"`
	NVMeTests struct {
		Table list[struct {
			Result result `json:"self_test_result"`
		}] `json:"table"`
	} `json:"nvme_self_test_log"`
	SCSITest0 scsiTest `json:"scsi_self_test_0"` // the newest of twenty; three are enough to find one not aborted
	SCSITest1 scsiTest `json:"scsi_self_test_1"`
	SCSITest2 scsiTest `json:"scsi_self_test_2"`

	GrownDefects   number `json:"scsi_grown_defect_list"`
	PendingDefects struct {
		Count number `json:"count"`
	} `json:"scsi_pending_defects"`
	ErrorCounters struct {
		Read   errorCounters `json:"read"`
		Write  errorCounters `json:"write"`
		Verify errorCounters `json:"verify"`
	} `json:"scsi_error_counter_log"`
	SCSIUsed    number `json:"scsi_percentage_used_endurance_indicator"`
	Environment struct {
		First struct {
			Current number `json:"current"`
		} `json:"temperature_1"`
	} `json:"scsi_environmental_reports"`
}

// assessment is a drive's self-assessment.
type assessment struct {
	Passed truth `json:"passed"`
	SCSI   struct {
		ASC  number `json:"asc"`       // additional sense code (SPC-5): 0x5d is a predicted failure, 0x0b a warning
		ASCQ number `json:"ascq"`      // its qualifier
		Text word   `json:"ie_string"` // both as text
	} `json:"scsi"` // only if the SCSI drive has not passed
}

// attributes are the attributes of an ATA drive.
type attributes struct {
	Table required[list[attribute], array] `json:"table"`
}

// attribute is a row of an ATA drive's attribute table.
type attribute struct {
	ID         number `json:"id"`
	Name       word   `json:"name"`  // from smartctl's drive database
	Value      number `json:"value"` // normalized by the maker: mostly 100 at first, then decreasing
	Threshold  number `json:"thresh"`
	WhenFailed word   `json:"when_failed"`
	Flags      struct {
		PreFailure truth `json:"prefailure"` // false for attributes of use and age
	} `json:"flags"`
	Raw struct {
		Value number `json:"value"`  // 48 bits in the maker's format
		Text  word   `json:"string"` // decoded with smartctl's drive database
	} `json:"raw"`
}

// statistic is a row of an ATA drive's device statistics (ACS-4, log 04h).
type statistic struct {
	Name  word   `json:"name"`
	Value number `json:"value"`
	Flags struct {
		Valid truth `json:"valid"`
	} `json:"flags"`
}

// nvmeLog is the SMART / Health Information log page (NVM Express Base Specification, log page 02h).
type nvmeLog struct {
	Critical     number `json:"critical_warning"` // bits
	Temperature  number `json:"temperature"`      // degrees Celsius
	Spare        number `json:"available_spare"`  // per cent
	SpareLeast   number `json:"available_spare_threshold"`
	Used         number `json:"percentage_used"` // per cent; 255 is that or more
	UnitsRead    number `json:"data_units_read"` // 512,000 bytes each
	UnitsWritten number `json:"data_units_written"`
	PowerCycles  number `json:"power_cycles"`
	PowerOn      number `json:"power_on_hours"`
	MediaErrors  number `json:"media_errors"`

	Sensors [8]number `json:"temperature_sensors"` // degrees Celsius; null of one that is not there
}

// errorCounters is one of a SCSI drive's error counter log pages (SPC-5, 02h, 03h and 05h).
type errorCounters struct {
	Gigabytes   number `json:"gigabytes_processed"` // 10^9 bytes
	Uncorrected number `json:"total_uncorrected_errors"`
}
