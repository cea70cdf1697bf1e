package disk

import "strings"

// stacked reports by its name whether a device consists of other devices, files or memory. /sys lists slaves of most,
// but not during their setup, and not of zd (ZFS volumes) and older drbd.
func stacked(name string) bool {
	for _, prefix := range [...]string{"dm-", "md", "loop", "zram", "ram", "zd", "drbd", "bcache"} {
		if numbered(name, prefix) {
			return true
		}
	}
	return false
}

// inMemory reports by its name whether a device keeps its data in memory.
func inMemory(name string) bool { return numbered(name, "ram") || numbered(name, "zram") }

// numbered reports whether name is prefix and a number ("md0", "md_d0", "md/home").
func numbered(name, prefix string) bool {
	rest, found := strings.CutPrefix(name, prefix)
	return found && rest != "" && (isDigit(rest[0]) || rest[0] == '_' || rest[0] == '/')
}

// headOf returns the disk of a hidden NVMe path: nvme0n1 for nvme0c1n1, "" for other names.
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

// partOf returns the device of a partition by its name: sda for sda1, nvme0n1 for nvme0n1p2, "" for other names. The
// caller checks whether the device exists: some machines have an xvda1 and no xvda.
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
