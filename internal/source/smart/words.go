package smart

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/stallspan/stallspan/internal/sample"
)

// The bits of smartctl's exit code (smartctl(8), EXIT STATUS), as in sample.Drive's Exit.
const (
	ExitUsage   = 1 << iota // the command line was not understood, or the device was not
	ExitOpen                // the device could not be opened, did not say what it is, or sleeps
	ExitCommand             // a command to the device failed, or an answer was damaged
	ExitFailing             // the self-assessment is FAILED
	ExitAt                  // attributes that warn of a failure are at their threshold
	ExitWasAt               // attributes have been at their threshold in the past
	ExitErrors              // ATA: the log of errors has entries; only where it was asked for
	ExitTests               // ATA and SCSI: the log of self-tests has tests that failed; only where it was asked for
)

// exitWords say what each bit of smartctl's exit code means.
var exitWords = []string{
	"smartctl did not understand its command line or what the device is",
	"the device could not be opened or did not say what it is",
	"a command to the device failed or its answer was damaged",
	"the drive's self-assessment is FAILED",
	"attributes that warn of a failure are at their threshold",
	"attributes were at their threshold in the past",
	"the drive's log of errors has entries",
	"the drive's log of self-tests has tests that failed",
}

// ExitWords says in words what smartctl's exit code means, a clause for each of its bits; none for 0.
func ExitWords(code int) []string {
	var words []string
	for bit, text := range exitWords {
		if code&(1<<bit) != 0 {
			words = append(words, text)
		}
	}
	return words
}

var (
	lowPower = regexp.MustCompile(`(?i)device is in (?:standby|sleep)`)
	powerOff = regexp.MustCompile(`(?i)"(?:standby|sleep)`)
	bridge   = regexp.MustCompile(`Unknown USB bridge \[([0-9A-Fa-fx: ()]{1,40})\]`)
	adding   = regexp.MustCompile(`-d ([a-z0-9+]+(?:,[A-Za-z0-9/\[\]]+)*)`)
)

// asleep says whether smartctl left the drive alone because it sleeps.
func (doc *document) asleep() bool {
	for _, m := range doc.Smartctl.Messages {
		if lowPower.MatchString(string(m.Text)) {
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

// unread says why a drive told nothing of its health, and what to do; "" where it told something.
func (doc *document) unread(d *sample.Drive) string {
	if !d.Values.Empty() || d.Assessment != "" || len(d.AtThreshold)+len(d.HotAt)+len(d.AgedAt) > 0 || d.ASC != 0 ||
		d.Exit&(ExitFailing|ExitAt) != 0 {
		return ""
	}
	var said, first string
	for _, m := range doc.Smartctl.Messages {
		said += string(m.Text) + "\n"
		if first == "" && m.Severity != "information" {
			first = string(m.Text)
		}
	}
	if why := refusal(said, d.Device); why != "" {
		return why
	}
	switch s := doc.Support; {
	case s.Available.told && !s.Available.value:
		return "it has no SMART: nothing can be known of its health"
	case s.Enabled.told && !s.Enabled.value:
		return "its SMART is switched off: smartctl --smart=on /dev/" + orX(d.Device) + " switches it on"
	case volume(d.Model):
		return "it is a volume of a RAID controller, which hides the disks behind it: " + nameType(d.Device, "megaraid,0",
			"for each of them (cciss,N, areca,N, 3ware,N, aacraid,H,L,ID for other makers' controllers)")
	case first != "":
		return "smartctl says: " + first
	}
	if words := ExitWords(int(doc.exit())); len(words) > 0 {
		return fmt.Sprintf("smartctl ended with exit code %d: %s", doc.exit(), strings.Join(words, "; "))
	}
	return "it tells nothing of its health: where a bridge or RAID controller is in between, " + nameType(d.Device, "sat", "")
}

// refusal explains what smartctl says when it cannot reach a drive; "" for what is not known.
func refusal(said, device string) string {
	if m := bridge.FindStringSubmatch(said); m != nil {
		return fmt.Sprintf("smartctl does not know its USB bridge [%s]: %s", m[1],
			nameType(device, "sat", "(or usbjmicron, usbsunplus, usbprolific; sntjmicron, sntasmedia, sntrealtek for NVMe)"))
	}
	low := strings.ToLower(said)
	contains := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(low, w) {
				return true
			}
		}
		return false
	}
	switch {
	case contains("permission denied", "operation not permitted", "probable ata device behind a sat layer"):
		return notPermitted(device)
	case contains("megaraid,n"):
		return "a RAID controller hides the disks behind it: " + nameType(device, "megaraid,0", "(sat+megaraid,0 for SATA) for each of them")
	case contains("please try", "try adding", "try an additional", "specify device type"):
		suggested := "sat"
		if m := adding.FindStringSubmatch(said); m != nil {
			suggested = m[1]
		}
		return "it lies behind a controller or bridge: " + nameType(device, suggested, "")
	case contains("unable to detect device type", "unknown device type"):
		return "smartctl cannot tell what it is: where a bridge or RAID controller is in between, " + nameType(device, "sat", "")
	case contains("no such device", "no such file"):
		return "there is no such device"
	case contains("invalid option", "invalid argument to", "unrecognized option"):
		return errOld.Error()
	}
	return ""
}

// nameType says how to name a drive's type.
func nameType(device, suggested, further string) string {
	text := fmt.Sprintf("name its type, stallspan health --type %s %s, and in an agent's config smart: {disks: [{device: /dev/%[2]s, type: %[1]q}]}",
		suggested, orX(device))
	if further != "" {
		text += " " + further
	}
	return text
}

// orX is a device's name, or what stands for one.
func orX(device string) string {
	if device == "" {
		return "sdX"
	}
	return device
}

// notPermitted names the least that is enough. SCSI's and SATA's commands go through SG_IO, which wants CAP_SYS_RAWIO for
// all that is not on the kernel's short list (drivers/scsi/scsi_ioctl.c, scsi_cmd_allowed); NVMe's log pages go through
// NVME_IOCTL_ADMIN_CMD, which wants CAP_SYS_ADMIN (drivers/nvme/host/ioctl.c, nvme_cmd_allowed). That is nearly root, so
// a line for sudo is less.
func notPermitted(device string) string {
	capability := "the group disk and CAP_SYS_RAWIO"
	if strings.HasPrefix(device, "nvme") {
		capability = "the group disk and CAP_SYS_ADMIN"
	}
	return fmt.Sprintf("not permitted: it takes %s, or sudo for this command alone: health --sudo, and in a config smart: {sudo: true}", capability)
}

// volume says whether a model is what RAID controllers call the disks that they make up.
func volume(model string) bool {
	low := strings.ToLower(model)
	for _, w := range []string{"raid", "perc ", "logical volume", "virtual disk", "virtual drive", "smart array"} {
		if strings.Contains(low, w) {
			return true
		}
	}
	return false
}
