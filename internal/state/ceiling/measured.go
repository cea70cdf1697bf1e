package ceiling

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/state"
)

// Measured is what stallspan bench measured of a disk.
type Measured struct {
	Disk     string    `json:"disk"`                  // its name at that time
	Identity string    `json:"identity"`              // what Identify returned at that time
	Read     float64   `json:"read_bytes_per_second"` // highest throughput
	Await    float64   `json:"await_seconds"`         // median time of a read of 4 KiB at queue depth 1
	At       time.Time `json:"measured_at"`
}

func (m *Measured) valid() bool {
	return m.Disk != "" && m.Identity != "" && len(m.Disk)+len(m.Identity) <= 2*maxIdentity &&
		m.Read > 0 && m.Read < maxThroughput && m.Await > 0 && m.Await < maxAwait
}

const (
	maxMeasured = 256    // disks in a file; the oldest measurements are dropped
	maxAwait    = 3600.0 // seconds
)

// PathNextTo returns the file of measurements that belongs to a file of baselines: ceilings.json in the same folder.
func PathNextTo(baselines string) string {
	return filepath.Join(filepath.Dir(baselines), "ceilings.json")
}

func measurements(path string) *state.File[[]Measured] {
	return &state.File[[]Measured]{Path: path, Name: "disks", Version: 1, MaxSize: 1 << 20, Owned: true, Check: check}
}

func check(all []Measured) error {
	if len(all) > maxMeasured || slices.ContainsFunc(all, func(m Measured) bool { return !m.valid() }) {
		return errors.New("stallspan bench did not write it: remove it, and measure again")
	}
	return nil
}

// Load returns the measurements of a file, or nothing if the file does not exist.
func Load(path string) ([]Measured, error) {
	all, err := measurements(path).Load()
	if err != nil {
		return nil, fmt.Errorf("measurements of disks cannot be read from %s: %w", path, err)
	}
	return all, nil
}

// Store adds a measurement to a file and replaces an earlier one of the same disk. A damaged file is renamed.
func Store(path string, m Measured) error {
	err := fmt.Errorf("%.4g bytes/s and an await of %.4g s are not plausible", m.Read, m.Await)
	if m.valid() {
		file := measurements(path)
		file.Report = func(error) {} // the new measurement is worth more than a damaged file
		_, err = file.Update(func(all *[]Measured) error {
			*all = with(*all, m)
			return nil
		})
	}
	if err != nil {
		return fmt.Errorf("the measurement of %s cannot be stored in %s: %w", m.Disk, path, err)
	}
	return nil
}

// with returns the measurements with a new one, sorted by disk.
func with(all []Measured, m Measured) []Measured {
	all = slices.DeleteFunc(all, func(other Measured) bool { return other.Identity == m.Identity })
	all = append(all, m)
	slices.SortStableFunc(all, func(a, b Measured) int { return a.At.Compare(b.At) })
	all = all[max(0, len(all)-maxMeasured):]
	slices.SortFunc(all, func(a, b Measured) int {
		return cmp.Or(cmp.Compare(a.Disk, b.Disk), cmp.Compare(a.Identity, b.Identity))
	})
	return all
}

// duration converts seconds, rounded to nanoseconds.
func duration(seconds float64) time.Duration { return time.Duration(math.Round(seconds * 1e9)) }

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
