package main

import "strings"

// ownPrefix begins every name that is ours. Go identifiers leave it out: the package already says whose they are.
const ownPrefix = "stallspan."

// initialisms are the words that Go writes in one case, and iowait, whose two halves OpenTelemetry's own Go names
// tell apart.
var initialisms = map[string]string{
	"cpu": "CPU", "crc": "CRC", "dram": "DRAM", "gpu": "GPU", "id": "ID", "ids": "IDs", "io": "IO", "iowait": "IOWait",
	"nvlink": "NVLink", "ok": "OK", "pcie": "PCIe", "pid": "PID", "sm": "SM",
}

// goName turns a dotted name into an exported Go identifier: "stallspan.gpu.busy.time" gives "GPUBusyTime".
func goName(name string) string {
	var b strings.Builder
	for word := range strings.FieldsFuncSeq(strings.TrimPrefix(name, ownPrefix), isSeparator) {
		if known, ok := initialisms[word]; ok {
			b.WriteString(known)
			continue
		}
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

func isSeparator(r rune) bool { return r == '.' || r == '_' }
