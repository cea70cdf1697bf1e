package disk

import "strings"

// stacked tells by its name whether a device has no hardware of its own: it is made of other devices, files or
// memory. For most of these /sys lists slaves too, but not while they are set up, and not for zd (ZFS volumes) and
// older drbd.
func stacked(name string) bool {
	for _, prefix := range [...]string{"dm-", "md", "loop", "zram", "ram", "zd", "drbd", "bcache"} {
		if numbered(name, prefix) {
			return true
		}
	}
	return false
}

// numbered tells whether name is prefix and a number ("md0", "md_d0", "md/home").
func numbered(name, prefix string) bool {
	rest, found := strings.CutPrefix(name, prefix)
	return found && rest != "" && (isDigit(rest[0]) || rest[0] == '_' || rest[0] == '/')
}

// headOf is the disk that a hidden path belongs to: nvme0n1 for nvme0c1n1, "" for what is no such path.
func headOf(name string) string {
	rest, isNVMe := strings.CutPrefix(name, "nvme")
	if !isNVMe {
		return ""
	}
	subsystem, rest, hasController := strings.Cut(rest, "c")
	controller, namespace, hasNamespace := strings.Cut(rest, "n")
	if !hasController || !hasNamespace || !allDigits(subsystem) || !allDigits(controller) || !allDigits(namespace) {
		return ""
	}
	return "nvme" + subsystem + "n" + namespace
}

// partOf is the device that name is a partition of, going by names alone: sda of sda1, nvme0n1 of nvme0n1p2. "" where
// the name is no partition's; whether such a device exists is for the caller to see, as some machines have an xvda1
// and no xvda.
func partOf(name string) string {
	whole := strings.TrimRight(name, "0123456789")
	if whole == name || whole == "" {
		return ""
	}
	if before, hasP := strings.CutSuffix(whole, "p"); hasP && before != "" && isDigit(before[len(before)-1]) {
		return before
	}
	if isDigit(whole[len(whole)-1]) {
		return ""
	}
	return whole
}

func isDigit(c byte) bool { return c-'0' <= 9 }

func allDigits(s string) bool {
	for i := range len(s) {
		if !isDigit(s[i]) {
			return false
		}
	}
	return s != ""
}
