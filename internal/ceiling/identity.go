package ceiling

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/stallspan/stallspan/internal/sample"
)

// mostIdentity bounds an identity and each of its parts, in bytes.
const mostIdentity = 512

// identifying are the files below /sys/class/block/NAME that tell one disk from another. serial is a virtio disk's, wwid an
// NVMe namespace's, device/serial an NVMe drive's, device/wwid a SCSI disk's; a loop device is what its file is.
var identifying = [...]struct {
	file, key string
	alone     bool // no two disks have the same
}{
	{"size", "size", false}, // in sectors of 512 bytes
	{"device/model", "model", false},
	{"serial", "serial", true},
	{"device/serial", "serial", true},
	{"wwid", "wwid", true},
	{"device/wwid", "wwid", true},
	{"loop/backing_file", "file", true},
}

// Identify says which disk it is that has a name now, below the folder root that stands for "/": its size, model, serial
// number and WWID as far as the kernel tells them, and its name where it tells no number. "" where there is no such disk,
// or nothing in it.
func Identify(root, disk string) string {
	folder := filepath.Join("/", root, "sys/class/block", strings.ReplaceAll(disk, "/", "!"))
	var parts []string
	alone := false
	for _, f := range identifying {
		text := word(filepath.Join(folder, f.file))
		if f.file == "size" && (text == "" || text == "0") {
			return ""
		}
		if part := f.key + "=" + text; text != "" && !slices.Contains(parts, part) {
			parts = append(parts, part)
			alone = alone || f.alone
		}
	}
	if !alone {
		parts = append(parts, "name="+disk)
	}
	identity := strings.Join(parts, " ")
	return identity[:min(len(identity), mostIdentity)]
}

// word is a file's text in one line, without what cannot be printed; "" where it cannot be read.
func word(path string) string {
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
	return line[:min(len(line), mostIdentity)]
}

// Here is what was measured of the disks that are there now, by the names that they have now. A disk that was swapped
// for another one inherits nothing.
func Here(root string, all []Measured) []sample.Ceiling {
	if len(all) == 0 {
		return nil
	}
	folders, _ := os.ReadDir(filepath.Join("/", root, "sys/class/block"))
	var found []sample.Ceiling
	for _, folder := range folders[:min(len(folders), 4*mostDisks)] {
		name := strings.ReplaceAll(folder.Name(), "!", "/")
		identity := Identify(root, name)
		if i := slices.IndexFunc(all, func(m Measured) bool { return m.Identity == identity }); i >= 0 {
			found = append(found, sample.Ceiling{Disk: name, Read: all[i].Read, ReadAwait: duration(all[i].Await)})
		}
	}
	return found[:min(len(found), mostDisks)]
}
