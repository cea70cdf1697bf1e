package bench

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/disk"
)

// disks are the names of the disks of the target.
type disks []string

// disk finds the disk that is measured, or notes why it is not a single one.
func (m *measurement) disk() {
	under, device, known := m.disks.find("file", &m.result.ending, func(source *disk.Source) (disk.Placement, error) {
		if m.target.isDevice {
			return source.UnderMount(sample.Mount{Major: m.target.major, Minor: m.target.minor})
		}
		return source.Under(m.target.path)
	})
	m.result.Device = device
	if known && len(under.Disks) == 0 && !m.target.memory {
		m.result.note("It is not on a disk of this machine.")
	}
}

// find sets the disks. It returns the name of a single one, or notes why it is not a single one. known is false if it
// cannot be found out.
func (d *disks) find(what string, to *ending, place func(*disk.Source) (disk.Placement, error)) (under disk.Placement,
	device string, known bool,
) {
	source, err := disk.New("")
	if err != nil {
		to.note("The disk is unknown: %v.", err)
		return under, "", false
	}
	defer func() { _ = source.Close() }()
	under, err = place(source)
	*d = under.Disks
	switch {
	case len(*d) == 1:
		device = (*d)[0]
	case len(*d) > 1:
		to.note("It is on %d disks (%s): the numbers are those of all of them.", len(*d), strings.Join(*d, ", "))
	case err != nil:
		to.note("The disk of the %s is unknown: %v.", what, err)
	}
	return under, device, err == nil
}

// counters are the bytes that all disks together have read since boot.
func (d disks) counters() (bytes uint64) {
	for _, name := range d {
		text, err := os.ReadFile(filepath.Join("/sys/class/block", strings.ReplaceAll(name, "/", "!"), "stat"))
		if err != nil {
			continue
		}
		if fields := strings.Fields(string(text)); len(fields) > 2 {
			sectors, _ := strconv.ParseUint(fields[2], 10, 64) // of 512 bytes, whatever the disk's own sector size is
			bytes += sectors * 512
		}
	}
	return bytes
}

// owns reports whether the single disk itself has read the bytes that were read from the target since then. If not, it
// adds a note.
func (m *measurement) owns(before, read uint64) bool {
	if len(m.disks) != 1 || read == 0 {
		return false
	}
	fromDisk := m.disks.counters() - before
	if float64(fromDisk) >= 0.9*float64(read) {
		return true
	}
	if !m.above {
		m.above = true
		m.result.note("%s itself has read %.0f %% of the bytes: the rest came from a cache above it, or was compressed.",
			m.result.Device, 100*float64(fromDisk)/float64(read))
	}
	return false
}
