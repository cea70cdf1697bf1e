package bench

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/disk"
)

// disks are those that the target lies on.
type disks struct {
	names []string
}

// disk finds out which disk is measured, and tells why it is not one.
func (m *measurement) disk() {
	source, err := disk.New("")
	if err != nil {
		m.result.note("Which disk it is cannot be told: %v.", err)
		return
	}
	defer func() { _ = source.Close() }()
	var under disk.Placement
	if m.target.isDevice {
		under, err = source.UnderMount(sample.Mount{Major: m.target.major, Minor: m.target.minor})
	} else {
		under, err = source.Under(m.target.path)
	}
	switch {
	case len(under.Disks) == 1:
		m.disks.names, m.result.Device = under.Disks, under.Disks[0]
	case len(under.Disks) > 1:
		m.disks.names = under.Disks
		m.result.note("It lies on %d disks (%s): the numbers are those of all of them.", len(under.Disks),
			strings.Join(under.Disks, ", "))
	case err != nil:
		m.result.note("Which disk it lies on cannot be told: %v.", err)
	case !m.target.memory:
		m.result.note("It lies on no disk of this machine.")
	}
}

// counters are the bytes that the disks have read since boot, all together.
func (d *disks) counters() (bytes uint64) {
	for _, name := range d.names {
		text, err := os.ReadFile(filepath.Join("/sys/class/block", strings.ReplaceAll(name, "/", "!"), "stat"))
		if err != nil {
			continue
		}
		if fields := strings.Fields(string(text)); len(fields) > 2 {
			sectors, _ := strconv.ParseUint(fields[2], 10, 64) // of 512 bytes, whatever the disk's own are
			bytes += sectors * 512
		}
	}
	return bytes
}

// owns says whether the one disk itself has read what was read from the target since then, and notes where it has not.
func (m *measurement) owns(before, read uint64) bool {
	if len(m.disks.names) != 1 || read == 0 {
		return false
	}
	seen := m.disks.counters() - before
	if float64(seen) >= 0.9*float64(read) {
		return true
	}
	if !m.above {
		m.above = true
		m.result.note("%s itself has read %.0f %% of what was read here: the rest came from a cache above it, or was "+
			"compressed.",
			m.result.Device, 100*float64(seen)/float64(read))
	}
	return false
}
