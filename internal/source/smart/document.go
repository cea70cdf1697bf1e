package smart

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// document is the JSON of smartctl since version 7.0. Versions before 7.2 print some SCSI names without "scsi_". The
// keys are those of smartctl's source.
type document struct {
	Format   []number `json:"json_format_version"`
	Smartctl struct {
		Version   []number `json:"version"`
		Exit      number   `json:"exit_status"`
		Arguments []word   `json:"argv"`
		Messages  []struct {
			Text     string `json:"string"`
			Severity word   `json:"severity"` // "error", "warning", "information"
		} `json:"messages"`
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
	Namespaces   []struct {
		EUI64 struct {
			OUI number `json:"oui"`    // 24 bits
			ID  number `json:"ext_id"` // 40 bits
		} `json:"eui64"`
	} `json:"nvme_namespaces"`

	Status  assessment `json:"smart_status"`
	Support struct {
		Available *bool `json:"available"`
		Enabled   *bool `json:"enabled"`
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

	Attributes attributes `json:"ata_smart_attributes"`
	Statistics struct {
		Pages []struct {
			Table []statistic `json:"table"`
		} `json:"pages"`
	} `json:"ata_device_statistics"`

	NVMe nvmeLog `json:"nvme_smart_health_information_log"`

	ATATests struct {
		Extended ataTests `json:"extended"`
		Standard ataTests `json:"standard"`
	} `json:"ata_smart_self_test_log"`
	NVMeTests struct {
		Table []struct {
			Result result `json:"self_test_result"`
		} `json:"table"`
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
	Passed *bool `json:"passed"`
	SCSI   struct {
		ASC  number `json:"asc"`       // additional sense code (SPC-5): 0x5d is a predicted failure, 0x0b a warning
		ASCQ number `json:"ascq"`      // its qualifier
		Text word   `json:"ie_string"` // both as text
	} `json:"scsi"` // only if the SCSI drive has not passed
}

// attributes are the attributes of an ATA drive.
type attributes struct {
	Table []attribute `json:"table"`
}

// attribute is a row of an ATA drive's attribute table.
type attribute struct {
	ID         number `json:"id"`
	Name       word   `json:"name"`  // from smartctl's drive database
	Value      number `json:"value"` // normalized by the maker: mostly 100 at first, then decreasing
	Threshold  number `json:"thresh"`
	WhenFailed word   `json:"when_failed"`
	Flags      struct {
		PreFailure *bool `json:"prefailure"` // false for attributes of use and age
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
		Valid bool `json:"valid"`
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

// result is the result of a self-test.
type result struct {
	Value number `json:"value"`
	Text  word   `json:"string"`
}

// ataTests is a self-test log of an ATA drive, the newest test first.
type ataTests struct {
	Table []struct {
		Status result `json:"status"`
	} `json:"table"`
}

// scsiTest is an entry of a SCSI drive's self-test log (SPC-5, log page 10h).
type scsiTest struct {
	Result result `json:"result"`
}

// The codes of failed tests. 0 is a test without error. All others were aborted or are running.
var failedCodes = map[string]struct{ first, last, shift int }{
	"ATA":  {3, 8, 4}, // ACS-4, self-test execution status: the upper four bits
	"SCSI": {3, 7, 0}, // SPC-5, self-test results log page
	"NVMe": {5, 7, 0}, // NVM Express Base Specification, log page 06h
}

// failedTest returns smartctl's text for the last self-test that was not aborted, if it failed, else "". The self-test
// logs are part of smartctl -a, but not of what Source reads.
func (doc *document) failedTest(protocol string) string {
	codes := failedCodes[protocol]
	for _, r := range doc.tests(protocol) {
		if !r.Value.within(0, 255) {
			continue
		}
		switch code := int(r.Value.value) >> codes.shift; {
		case code == 0:
			return ""
		case code >= codes.first && code <= codes.last:
			return cmp.Or(string(r.Text), fmt.Sprintf("code %d", code))
		}
	}
	return ""
}

// tests returns the results of self-tests, the newest first.
func (doc *document) tests(protocol string) []result {
	var all []result
	switch protocol {
	case "ATA":
		log := doc.ATATests.Extended.Table
		if len(log) == 0 {
			log = doc.ATATests.Standard.Table
		}
		for i := range log {
			all = append(all, log[i].Status)
		}
	case "NVMe":
		for i := range doc.NVMeTests.Table {
			all = append(all, doc.NVMeTests.Table[i].Result)
		}
	case "SCSI":
		all = append(all, doc.SCSITest0.Result, doc.SCSITest1.Result, doc.SCSITest2.Result)
	}
	return all
}

// Bounds on the output of smartctl. A drive in an enclosure of 24 prints about 30 KiB.
const (
	maxOutput = 4 << 20 // bytes
	maxItems  = 256     // attributes, and messages
	maxWord   = 128     // bytes of a name

	maxMessage = 4 * maxWord
)

// number is a JSON number, or a string with one, as smartctl prints gigabytes. Any other JSON is an unknown number.
type number struct {
	value float64
	known bool
}

// UnmarshalJSON implements json.Unmarshaler and never fails.
func (n *number) UnmarshalJSON(text []byte) error {
	*n = number{}
	word := string(text)
	if strings.HasPrefix(word, `"`) {
		if json.Unmarshal(text, &word) != nil {
			return nil
		}
		word = strings.TrimSpace(word)
	}
	if len(word) > 64 || strings.Trim(word, "0123456789+-.eE") != "" {
		return nil
	}
	value, err := strconv.ParseFloat(word, 64)
	n.value, n.known = value, err == nil && !math.IsInf(value, 0) && !math.IsNaN(value)
	return nil
}

// within reports whether a number is known and in a range.
func (n number) within(low, high float64) bool { return n.known && n.value >= low && n.value <= high }

// count reports whether a number can be a count: an integer that is not negative.
func (n number) count() bool { return n.within(0, 1<<63) && n.value == math.Trunc(n.value) }

// isFalse reports whether a JSON bool is known and false.
func isFalse(b *bool) bool { return b != nil && !*b }

// word is a JSON string, cleaned and cut to maxWord. Any other JSON is "".
type word string

// UnmarshalJSON implements json.Unmarshaler and never fails.
func (w *word) UnmarshalJSON(text []byte) error {
	*w = ""
	var s string
	if json.Unmarshal(text, &s) == nil {
		*w = word(clean(s, maxWord))
	}
	return nil
}

// clean makes a text one line without control characters, and cuts it.
func clean(s string, maxBytes int) string {
	if len(s) > maxBytes {
		s = s[:maxBytes]
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsGraphic(r):
			return r
		}
		return -1
	}, strings.ToValidUTF8(s, ""))
	return strings.Join(strings.Fields(s), " ")
}

// needed are the parts without which a drive could be assessed as healthy by mistake.
type needed struct {
	Status struct {
		Passed *bool `json:"passed"`
	} `json:"smart_status"`
	Attributes struct {
		Table []json.RawMessage `json:"table"`
	} `json:"ata_smart_attributes"`
}

// checkNeeded returns an error if such a part has another type.
func checkNeeded(text []byte) error {
	var wrong *json.UnmarshalTypeError
	if errors.As(json.Unmarshal(text, new(needed)), &wrong) {
		return fmt.Errorf("%s is not what smartctl prints, so the drive cannot be assessed: give the unchanged output of "+
			"smartctl --json", wrong.Field)
	}
	return nil
}

// isTypeError reports whether an error is about a value of another type, which was left out while the rest was read.
func isTypeError(err error) bool {
	var invalid *json.UnmarshalTypeError
	return errors.As(err, &invalid)
}

var (
	errEmpty = errors.New("smartctl printed nothing")
	errOld   = errors.New("this smartctl is older than 7.0, the first version that prints JSON: update smartmontools")
)

// decode reads an object. Values of another type than expected are left out.
func decode(text []byte, out any) error {
	text = bytes.TrimSpace(text)
	switch {
	case len(text) == 0:
		return errEmpty
	case len(text) > maxOutput:
		return fmt.Errorf("it is longer than %d MiB: give the output of smartctl --json for one drive", maxOutput>>20)
	case bytes.HasPrefix(text, []byte("smartctl ")):
		if bytes.Contains(text, []byte("RECOGNIZED OPTION")) || bytes.HasPrefix(text, []byte("smartctl 6.")) {
			return errOld
		}
		return errors.New("it is the text output of smartctl: call smartctl with --json")
	case text[0] != '{':
		return fmt.Errorf("it is not smartctl's JSON: it begins with %.20q", text)
	}
	if err := json.Unmarshal(text, out); err != nil && !isTypeError(err) {
		return fmt.Errorf("it is incomplete or invalid JSON: %w", err)
	}
	return nil
}
