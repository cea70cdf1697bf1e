package smart

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	"github.com/stallspan/stallspan/internal/sample"
)

// The bits of smartctl's exit code (smartctl(8), EXIT STATUS), in sample.Drive.Exit.
const (
	ExitUsage   = 1 << iota // invalid command line, or unsupported device
	ExitOpen                // the device could not be opened or identified, or sleeps
	ExitCommand             // a command to the device failed, or its response was damaged
	ExitFailing             // the self-assessment is FAILED
	ExitAt                  // attributes that warn of a failure are at their threshold
	ExitWasAt               // attributes were at their threshold in the past
	ExitErrors              // ATA: the error log has entries; only if it was read
	ExitTests               // ATA and SCSI: the self-test log has failed tests; only if it was read
)

// exitMessages has the meaning of each bit of smartctl's exit code.
var exitMessages = []string{
	"smartctl rejected its command line, or does not support the device",
	"the device could not be opened or identified",
	"a command to the device failed, or its response was damaged",
	"the drive's self-assessment is FAILED",
	"attributes that warn of a failure are at their threshold",
	"attributes were at their threshold in the past",
	"the drive's error log has entries",
	"the drive's self-test log has failed tests",
}

// ExitWords returns the meaning of smartctl's exit code, a clause for each bit.
func ExitWords(code int) []string {
	var words []string
	for bit, text := range exitMessages {
		if code&(1<<bit) != 0 {
			words = append(words, text)
		}
	}
	return words
}

var (
	lowPower      = regexp.MustCompile(`(?i)device is in (?:standby|sleep)`)
	powerOff      = regexp.MustCompile(`(?i)"(?:standby|sleep)`)
	bridge        = regexp.MustCompile(`Unknown USB bridge \[([0-9A-Fa-fx: ()]{1,40})\]`)
	suggestedType = regexp.MustCompile(`-d ([a-z0-9+]+(?:,[A-Za-z0-9/\[\]]+)*)`)
)

// asleep reports whether smartctl did not read the drive because it sleeps.
func (doc *document) asleep() bool {
	for _, m := range doc.Smartctl.Messages {
		if lowPower.MatchString(m.Text) {
			return true
		}
	}
	return doc.exit()&ExitOpen != 0 && powerOff.Match(doc.PowerMode)
}

func (doc *document) exit() uint8 {
	if n := doc.Smartctl.Exit; n.within(0, 255) {
		return uint8(n.value)
	}
	return 0
}

// unread returns why the drive's health could not be read and what to do, or "" if it could.
func (doc *document) unread(d *sample.Drive) string {
	if !d.Values.Empty() || d.Assessment != "" || len(d.AtThreshold)+len(d.HotAt)+len(d.AgedAt) > 0 || d.ASC != 0 ||
		d.Exit&(ExitFailing|ExitAt) != 0 {
		return ""
	}
	var output, first string
	for _, m := range doc.Smartctl.Messages {
		text := clean(m.Text, maxMessage)
		output += text + "\n"
		if first == "" && m.Severity != "information" {
			first = text
		}
	}
	if why := explain(output, d.Device); why != "" {
		return why
	}
	switch s := doc.Support; {
	case isFalse(s.Available):
		return "it has no SMART, so its health is unknown"
	case isFalse(s.Enabled):
		return "its SMART is disabled: enable it with smartctl --smart=on /dev/" + cmp.Or(d.Device, "sdX")
	case hasAny(strings.ToLower(d.Model), raidVolumes):
		return "it is a volume of a RAID controller, which hides its disks: " + typeHint(d.Device, "megaraid,0",
			"for each disk (cciss,N, areca,N, 3ware,N, aacraid,H,L,ID for other controllers)")
	case first != "":
		return "smartctl: " + first
	}
	if words := ExitWords(int(doc.exit())); len(words) > 0 {
		return fmt.Sprintf("smartctl ended with exit code %d: %s", doc.exit(), strings.Join(words, "; "))
	}
	return "it reports no health values: if a bridge or RAID controller is in between, " + typeHint(d.Device, "sat", "")
}

// explain returns what a known message of smartctl means and what to do, or "".
func explain(output, device string) string {
	if m := bridge.FindStringSubmatch(output); m != nil {
		return fmt.Sprintf("smartctl does not know its USB bridge [%s]: %s", m[1],
			typeHint(device, "sat", "(or usbjmicron, usbsunplus, usbprolific; sntjmicron, sntasmedia, sntrealtek for NVMe)"))
	}
	low := strings.ToLower(output)
	contains := func(words ...string) bool { return hasAny(low, words) }
	switch {
	case contains("permission denied", "operation not permitted", "probable ata device behind a sat layer"):
		return permissionHint(device)
	case contains("megaraid,n"):
		return "a RAID controller hides its disks: " +
			typeHint(device, "megaraid,0", "(sat+megaraid,0 for SATA) for each disk")
	case contains("please try", "try adding", "try an additional", "specify device type"):
		suggested := "sat"
		if m := suggestedType.FindStringSubmatch(output); m != nil {
			suggested = m[1]
		}
		return "it is behind a controller or bridge: " + typeHint(device, suggested, "")
	case contains("unable to detect device type", "unknown device type"):
		return "smartctl cannot detect its type: if a bridge or RAID controller is in between, " + typeHint(device, "sat", "")
	case contains("no such device", "no such file"):
		return "the device does not exist"
	case contains("invalid option", "invalid argument to", "unrecognized option"):
		return errOld.Error()
	}
	return ""
}

// typeHint says how to set a drive's type.
func typeHint(device, suggested, further string) string {
	text := fmt.Sprintf("set its type with stallspan health --type %s %s, or in the config: "+
		"smart: {disks: [{device: /dev/%[2]s, type: %[1]q}]}",
		suggested, cmp.Or(device, "sdX"))
	if further != "" {
		text += " " + further
	}
	return text
}

// permissionHint returns the smallest sufficient permission. SCSI and SATA commands use SG_IO, which requires
// CAP_SYS_RAWIO for all commands but a few (drivers/scsi/scsi_ioctl.c, scsi_cmd_allowed). NVMe log pages use
// NVME_IOCTL_ADMIN_CMD, which requires CAP_SYS_ADMIN (drivers/nvme/host/ioctl.c, nvme_cmd_allowed). A sudoers line
// grants less than these.
func permissionHint(device string) string {
	capability := "CAP_SYS_RAWIO"
	if strings.HasPrefix(device, "nvme") {
		capability = "CAP_SYS_ADMIN, which is nearly root"
	}
	return fmt.Sprintf("not permitted: it requires the group disk, which may write all disks, and %s; or sudo for this "+
		"command only: health --sudo, in the config smart: {sudo: true}", capability)
}

// raidVolumes are parts of the models of volumes of RAID controllers.
var raidVolumes = []string{"raid", "perc ", "logical volume", "virtual disk", "virtual drive", "smart array"}
