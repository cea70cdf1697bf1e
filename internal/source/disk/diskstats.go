package disk

import (
	"bytes"
	"fmt"
	"math"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// Numbers of values on a line of /proc/diskstats after the name, by kernel version. Further values are ignored.
const (
	firstColumns   = 11
	discardColumns = 15 // Linux 4.18
	flushColumns   = 17 // Linux 5.5
)

// sector is the kernel's unit of sizes in bytes, for devices with any sector size.
const sector = 512

// skipped describes the lines that could not be parsed.
type skipped struct {
	lines int
	first int // its number in the text, from 1
	text  []byte
}

func (s skipped) err() error {
	if s.lines == 0 {
		return nil
	}
	return fmt.Errorf("/proc/diskstats: %d line(s) cannot be parsed and are left out, the first is line %d: %q",
		s.lines, s.first, s.text)
}

// parse appends one Disk per line to disks. known are the expected names in order: a name that is found at its place is
// shared instead of copied, so that a machine without changes causes no allocation.
func parse(text []byte, known []string, disks []sample.Disk) ([]sample.Disk, skipped) {
	var bad skipped
	first := len(disks)
	for number := 1; len(text) > 0; number++ {
		end := bytes.IndexByte(text, '\n')
		ended := end >= 0
		line := text
		if ended {
			line, text = text[:end], text[end+1:]
		} else {
			text = nil
		}
		if ended && len(line) == 0 {
			continue
		}
		expected := ""
		if i := len(disks) - first; i < len(known) {
			expected = known[i]
		}
		disks = append(disks, sample.Disk{})
		// A last line without a line feed may lack digits, which would look like a restarted counter.
		if !ended || !parseLine(line, expected, &disks[len(disks)-1]) {
			disks = disks[:len(disks)-1]
			if bad.lines++; bad.lines == 1 {
				bad.first, bad.text = number, line[:min(len(line), 80)]
			}
		}
	}
	return disks, bad
}

// parseLine parses "major minor name values...". It rejects sizes and times that do not fit into 64 bits in bytes or
// nanoseconds, which no machine can reach.
func parseLine(line []byte, expected string, disk *sample.Disk) bool {
	_, line, majorOK := number(line)
	_, line, minorOK := number(line)
	name, line := word(line)
	if !majorOK || !minorOK || len(name) == 0 {
		return false
	}
	var v [flushColumns]uint64
	columns := 0
	for columns < len(v) {
		value, rest, ok := number(line)
		if !ok {
			break
		}
		v[columns] = value
		columns++
		line = rest
	}
	switch {
	case columns < len(v) && !blank(line): // something that is not a number
		return false
	case columns >= flushColumns:
		disk.Has = sample.HasDiscards | sample.HasFlushes
	case columns >= discardColumns:
		disk.Has = sample.HasDiscards
		clear(v[discardColumns:])
	case columns >= firstColumns:
		clear(v[firstColumns:])
	default:
		return false
	}
	for _, size := range [...]uint64{v[2], v[6], v[13]} {
		if size > math.MaxUint64/sector {
			return false
		}
	}
	for _, ms := range [...]uint64{v[3], v[7], v[9], v[10], v[14], v[16]} {
		if ms > math.MaxInt64/uint64(time.Millisecond) {
			return false
		}
	}

	if string(name) == expected {
		disk.Name = expected
	} else {
		disk.Name = string(name)
	}
	disk.ReadIOs, disk.ReadMerges, disk.ReadBytes, disk.ReadTicks = v[0], v[1], v[2]*sector, milliseconds(v[3])
	disk.WriteIOs, disk.WriteMerges, disk.WriteBytes, disk.WriteTicks = v[4], v[5], v[6]*sector, milliseconds(v[7])
	disk.InFlight, disk.IOTicks, disk.TimeInQueue = v[8], milliseconds(v[9]), milliseconds(v[10])
	disk.DiscardIOs, disk.DiscardMerges, disk.DiscardBytes, disk.DiscardTicks = v[11], v[12], v[13]*sector, milliseconds(
		v[14],
	)
	disk.FlushIOs, disk.FlushTicks = v[15], milliseconds(v[16])
	return true
}

func milliseconds(n uint64) time.Duration { return time.Duration(n) * time.Millisecond }

// number splits a decimal number from the front of line, after blanks. It reports false if there is no number, if it
// does not end at a blank, or if it exceeds 64 bits.
func number(line []byte) (value uint64, rest []byte, ok bool) {
	i := 0
	for i < len(line) && isBlank(line[i]) {
		i++
	}
	start := i
	for i < len(line) && line[i]-'0' <= 9 {
		digit := uint64(line[i] - '0')
		if value > (math.MaxUint64-digit)/10 {
			return 0, line, false
		}
		value = value*10 + digit
		i++
	}
	if i == start || i < len(line) && !isBlank(line[i]) {
		return 0, line, false
	}
	return value, line[i:], true
}

// word splits the text between blanks from the front of line.
func word(line []byte) (text, rest []byte) {
	i := 0
	for i < len(line) && isBlank(line[i]) {
		i++
	}
	start := i
	for i < len(line) && !isBlank(line[i]) {
		i++
	}
	return line[start:i], line[i:]
}

func blank(line []byte) bool {
	for _, c := range line {
		if !isBlank(c) {
			return false
		}
	}
	return true
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' }
