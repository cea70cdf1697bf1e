package ceiling

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/stallspan/stallspan/internal/sample"
)

// maxIdentity bounds an identity and each of its parts, in bytes.
const maxIdentity = 512

// identifying are the files below /sys/class/block/NAME that distinguish disks: serial exists for virtio disks, wwid
// for NVMe namespaces, device/serial for NVMe drives, device/wwid for SCSI disks. A loop device is identified by its
// file.
var identifying = [...]struct {
	file, key string
	unique    bool // no two disks have the same value
}{
	{"size", "size", false}, // in sectors of 512 bytes
	{"device/model", "model", false},
	{"serial", "serial", true},
	{"device/serial", "serial", true},
	{"wwid", "wwid", true},
	{"device/wwid", "wwid", true},
	{"loop/backing_file", "file", true},
}

// Identify returns which disk has a name now: its size, model, serial number and WWID where the kernel has them, and
// its name where none of them is unique. It returns "" where the disk does not exist or has no medium. root is the
// folder of the host's "/".
func Identify(root, disk string) string {
	folder := filepath.Join("/", root, "sys/class/block", strings.ReplaceAll(disk, "/", "!"))
	var parts []string
	unique := false
	for _, f := range identifying {
		text := line(filepath.Join(folder, f.file))
		if f.file == "size" && (text == "" || text == "0") {
			return ""
		}
		if part := f.key + "=" + text; text != "" && !slices.Contains(parts, part) {
			parts = append(parts, part)
			unique = unique || f.unique
		}
	}
	if !unique {
		parts = append(parts, "name="+disk)
	}
	identity := strings.Join(parts, " ")
	return identity[:min(len(identity), maxIdentity)]
}

// line returns a file's printable text in one line, or "" where it cannot be read.
func line(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	clean := func(r rune) rune {
		if r == unicode.ReplacementChar || !unicode.IsGraphic(r) {
			return -1
		}
		return r
	}
	line := strings.Join(strings.Fields(strings.Map(clean, strings.ReplaceAll(string(text), "\n", " "))), " ")
	return line[:min(len(line), maxIdentity)]
}

// Present returns the measurements of the disks that exist now, under their present names. A replaced disk inherits
// nothing.
func Present(root string, all []Measured) []sample.Ceiling {
	if len(all) == 0 {
		return nil
	}
	folders, _ := os.ReadDir(filepath.Join("/", root, "sys/class/block"))
	var found []sample.Ceiling
	for _, folder := range folders[:min(len(folders), 4*maxDisks)] {
		name := strings.ReplaceAll(folder.Name(), "!", "/")
		identity := Identify(root, name)
		if i := slices.IndexFunc(all, func(m Measured) bool { return m.Identity == identity }); i >= 0 {
			found = append(found, sample.Ceiling{Disk: name, Read: all[i].Read, ReadAwait: duration(all[i].Await)})
		}
	}
	return found[:min(len(found), maxDisks)]
}
