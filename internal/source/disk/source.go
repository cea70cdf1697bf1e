// Package disk reads the counters of block devices (/proc/diskstats), distinguishes disks from devices that are stacked
// on them, and finds the disks under a path.
package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/kernfile"
	"github.com/stallspan/stallspan/internal/source/mount"
)

// maxText bounds one reading in bytes: about 40,000 devices.
const maxText = 4 << 20

// Source is the sample.Source of block devices. Calls of Read must not overlap. Under and UnderMount are safe for
// concurrent use.
type Source struct {
	root  string
	sys   sysfs
	lists []*mount.List

	path    string   // /proc/diskstats
	text    []byte   // buffer
	known   []string // devices of the last reading, in its order
	tree    tree     // from /sys, about known
	looped  []loop   // loop devices of known
	counts  sample.DiskNormalizer
	noSysfs bool // the missing /sys was reported
	untimed bool // disks without times were reported
}

var _ sample.Source = (*Source)(nil)

// New opens the counters of the machine with "/" at the folder root: "" or "/" for this machine, "/hostfs" or similar
// in a container. It fails if /proc/diskstats cannot be opened.
func New(root string) (*Source, error) {
	if root == "" {
		root = "/"
	}
	s := &Source{root: filepath.Clean(root)}
	s.lists = mountLists(s.root)
	s.sys = sysfs{root: s.root}
	s.path = filepath.Join(s.root, "proc/diskstats")
	file, err := os.Open(s.path)
	if err != nil {
		return nil, missing(err)
	}
	return s, file.Close()
}

// Close closes the lists of mounts. Under opens them again.
func (s *Source) Close() error {
	for _, list := range s.lists {
		_ = list.Close()
	}
	return nil
}

// Read appends every block device to out.Disks, in the order of the kernel, and sets out.At to the middle of the
// reading, which takes microseconds. The error names lines that cannot be parsed.
func (s *Source) Read(out *sample.Sample) error {
	before := sample.Now()
	text, readErr := s.readAll()
	after := sample.Now()
	half := (after.Mono - before.Mono) / 2
	out.At = sample.Stamp{Mono: before.Mono + half, Wall: before.Wall.Add(half)}

	var bad skipped
	first := len(out.Disks)
	out.Disks, bad = parse(text, s.known, out.Disks)
	disks := out.Disks[first:]

	var treeErr error
	changed := !slices.EqualFunc(disks, s.known, func(d sample.Disk, name string) bool { return d.Name == name })
	if changed {
		treeErr = s.learn(disks)
	} else {
		s.follow(disks)
	}
	s.tree.mark(disks)
	s.counts.Normalize(out)
	var untimedErr error
	if !changed {
		untimedErr = s.lacking(disks)
	}
	if readErr == nil && bad.lines == 0 && treeErr == nil && untimedErr == nil {
		return nil
	}
	return oneLine(readErr, bad.err(), treeErr, untimedErr)
}

// lacking reports once the disks whose operations take no time, in a reading of the same devices as the one before.
func (s *Source) lacking(disks []sample.Disk) error {
	if s.untimed {
		return nil
	}
	var names []string
	for i := range disks {
		if d := &disks[i]; d.Leaf && d.Has&sample.LacksTimes != 0 && d.Has&sample.Uncounted == 0 {
			names = append(names, d.Name)
		}
	}
	if s.untimed = len(names) > 0; !s.untimed {
		return nil
	}
	return fmt.Errorf("%s counts operations of %s without their times, so await, queue and utilization are left out: "+
		"stallspan check says what may write it", s.path, strings.Join(names, ", "))
}

// learn stores a changed set of devices.
func (s *Source) learn(disks []sample.Disk) error {
	s.known = make([]string, len(disks))
	for i := range disks {
		s.known[i] = disks[i].Name
	}
	s.tree = s.sys.tree(s.known)
	s.looped = s.loops(disks)
	if s.tree.fromNames && !s.noSysfs {
		s.noSysfs = true
		return fmt.Errorf(
			"%s cannot be read, so disks and partitions are distinguished by their names: mount the host's /sys there",
			s.sys.block(),
		)
	}
	return nil
}

// readAll returns all of /proc/diskstats, or the complete lines before an error.
func (s *Source) readAll() (text []byte, err error) {
	s.text, err = kernfile.ReadWhole(s.path, s.text, maxText)
	switch {
	case err == nil && len(s.text) < maxText:
		return s.text, nil
	case err == nil:
		err = errTooLong
	default:
		var path *fs.PathError
		if errors.As(err, &path) && path.Op == "open" {
			return nil, missing(err)
		}
		err = fmt.Errorf("the disk counters could not be read completely: %w", err)
	}
	return s.text[:bytes.LastIndexByte(s.text, '\n')+1], err
}

func missing(err error) error {
	return fmt.Errorf("no disk counters: %w: mount /proc of the machine there", err)
}

var errTooLong = fmt.Errorf("/proc/diskstats exceeds %d MiB: the devices after that are left out", maxText>>20)

// oneLine joins errors into one of one line, or returns nil.
func oneLine(causes ...error) error {
	var problems sample.Problems
	for _, cause := range causes {
		problems.Add(cause)
	}
	return problems.Err()
}

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

	// device is the beginning of that line, its name included. The rest grows: each reading would be another problem.
	device []byte
}

func (s skipped) err() error {
	if s.lines == 0 {
		return nil
	}
	return fmt.Errorf("/proc/diskstats: %d line(s) cannot be parsed and are left out, the first is line %d: %q",
		s.lines, s.first, s.device)
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
				words := bytes.Fields(line[:min(len(line), 80)])
				bad.first, bad.device = number, bytes.Join(words[:min(len(words), 3)], []byte{' '})
			}
		}
	}
	return disks, bad
}

// parseLine parses "major minor name values...". It rejects sizes and times that do not fit into 64 bits in bytes or
// nanoseconds, which no machine can reach.
func parseLine(line []byte, expected string, disk *sample.Disk) bool {
	const heads = 3 // fields before the values
	var v [flushColumns]uint64
	fields, name := 0, []byte(nil)
	for field := range bytes.FieldsSeq(line) {
		value, ok := kernfile.ParseUint(field)
		switch {
		case fields == heads-1:
			name = field
		case !ok:
			return false
		case fields >= heads:
			v[fields-heads] = value
		}
		if fields++; fields == heads+len(v) {
			break
		}
	}
	switch columns := fields - heads; {
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
	if disk.Name = expected; string(name) != expected {
		disk.Name = string(name)
	}
	disk.ReadIOs, disk.ReadMerges, disk.ReadBytes, disk.ReadTicks = v[0], v[1], v[2]*sector, milliseconds(v[3])
	disk.WriteIOs, disk.WriteMerges, disk.WriteBytes, disk.WriteTicks = v[4], v[5], v[6]*sector, milliseconds(v[7])
	disk.InFlight, disk.IOTicks, disk.TimeInQueue = v[8], milliseconds(v[9]), milliseconds(v[10])
	disk.DiscardIOs, disk.DiscardMerges = v[11], v[12]
	disk.DiscardBytes, disk.DiscardTicks = v[13]*sector, milliseconds(v[14])
	disk.FlushIOs, disk.FlushTicks = v[15], milliseconds(v[16])
	return true
}

func milliseconds(n uint64) time.Duration { return time.Duration(n) * time.Millisecond }
