// Package disk reads the counters of block devices (/proc/diskstats), distinguishes disks from devices that are stacked
// on them, and finds the disks under a path.
package disk

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/kernfile"
	"github.com/stallspan/stallspan/internal/source/mount"
)

// maxText bounds one reading in bytes: about 40,000 devices.
const maxText = 4 << 20

// firstText is the first size of the buffer in bytes: about a hundred devices.
const firstText = 16 << 10

// Source is the sample.Source of block devices. Calls of Read must not overlap. Under and UnderMount are safe for
// concurrent use.
type Source struct {
	root  string
	sys   sysfs
	lists []*mount.List

	file    *kernfile.File // /proc/diskstats; nil after it failed, until the next Read opens it again
	text    []byte         // buffer with its full length
	known   []string       // devices of the last reading, in its order
	tree    tree           // from /sys, about known
	looped  []loop         // loop devices of known
	counts  sample.DiskNormalizer
	noSysfs bool // the missing /sys was reported
}

var _ sample.Source = (*Source)(nil)

// New opens the counters of the machine with "/" at the folder root: "" or "/" for this machine, "/hostfs" or similar
// in a container. It fails if /proc/diskstats cannot be opened.
func New(root string) (*Source, error) {
	if root == "" {
		root = "/"
	}
	s := &Source{root: filepath.Clean(root), text: make([]byte, firstText)}
	s.lists = mountLists(s.root)
	s.sys = sysfs{root: s.root}
	if err := s.open(); err != nil {
		return nil, err
	}
	return s, nil
}

// Close closes the files. Read and Under open them again.
func (s *Source) Close() error {
	for _, list := range s.lists {
		_ = list.Close()
	}
	return s.closeCounters()
}

func (s *Source) closeCounters() error {
	if s.file == nil {
		return nil
	}
	file := s.file
	s.file = nil
	return file.Close()
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
	if !sameNames(disks, s.known) {
		treeErr = s.learn(disks)
	} else {
		s.follow(disks)
	}
	s.tree.mark(disks)
	s.counts.Normalize(out)
	if readErr == nil && bad.lines == 0 && treeErr == nil {
		return nil
	}
	return oneLine(readErr, bad.err(), treeErr)
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

func sameNames(disks []sample.Disk, names []string) bool {
	if len(disks) != len(names) {
		return false
	}
	for i := range disks {
		if disks[i].Name != names[i] {
			return false
		}
	}
	return true
}

// readAll returns all of /proc/diskstats. It opens the file again once if a read fails.
func (s *Source) readAll() ([]byte, error) {
	if s.file != nil {
		text, err := s.readOpen()
		if err == nil || errors.Is(err, errTooLong) {
			return text, err
		}
		_ = s.closeCounters()
	}
	if err := s.open(); err != nil {
		return nil, err
	}
	text, err := s.readOpen()
	if err != nil && !errors.Is(err, errTooLong) {
		_ = s.closeCounters()
	}
	return text, err
}

var errTooLong = fmt.Errorf("/proc/diskstats exceeds %d MiB: the devices after that are left out", maxText>>20)

// readOpen reads to the end. One read returns at most about 4 KiB, and less where the next disk with all its partitions
// does not fit (diskstats_show of block/genhd.c). After an error it returns the complete lines before it.
func (s *Source) readOpen() ([]byte, error) {
	size := 0
	for {
		if size == len(s.text) {
			if size >= maxText {
				return wholeLines(s.text), errTooLong
			}
			s.text = append(s.text, make([]byte, min(size, maxText-size))...)
		}
		n, err := s.file.ReadAt(s.text[size:], int64(size))
		size += n
		if err != nil {
			return wholeLines(s.text[:size]), fmt.Errorf("the disk counters could not be read completely: %w", err)
		}
		if n == 0 {
			return s.text[:size], nil
		}
	}
}

func wholeLines(text []byte) []byte { return text[:bytes.LastIndexByte(text, '\n')+1] }

func (s *Source) open() error {
	file, err := kernfile.Open(filepath.Join(s.root, "proc/diskstats"))
	if err != nil {
		return fmt.Errorf("no disk counters: %w: mount /proc of the machine there", err)
	}
	s.file = file
	return nil
}

// oneLine joins errors into one of one line, or returns nil.
func oneLine(causes ...error) error {
	var problems sample.Problems
	for _, cause := range causes {
		problems.Add(cause)
	}
	return problems.Err()
}
