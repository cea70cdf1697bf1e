package main

import "strings"

// ownPrefix is the prefix of our names. Go identifiers omit it, because the package name implies it.
const ownPrefix = "stallspan."

// initialisms has the words that Go writes in one case, and iowait, which OpenTelemetry's own Go names write as two
// words.
var initialisms = map[string]string{
	"cpu": "CPU", "crc": "CRC", "dram": "DRAM", "gpu": "GPU", "gpudirect": "GPUDirect",
	"id": "ID", "ids": "IDs", "io": "IO", "iowait": "IOWait",
	"k8s": "K8S", "nvlink": "NVLink", "nvml": "NVML", "ok": "OK", "pcie": "PCIe", "pid": "PID", "sm": "SM",
	"uid": "UID", "url": "URL",
}

// goName converts a dotted name to an exported Go identifier: "stallspan.gpu.busy.time" becomes "GPUBusyTime".
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
