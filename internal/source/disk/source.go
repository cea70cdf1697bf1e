// Package disk reads the block devices' counters (/proc/diskstats), tells the disks from what is stacked on them,
// and finds the disks that lie under a path.
package disk

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// maxText bounds what one reading may take: about 40,000 devices.
const maxText = 4 << 20

// firstText holds the lines of about a hundred devices.
const firstText = 16 << 10

// Source is the sample.Source of block devices. Read is for one goroutine at a time; Under and UnderMount keep no
// state and may be called by any goroutine at any time.
type Source struct {
	root string
	sys  sysfs

	file    *kernfile.File // /proc/diskstats; nil after it failed, until the next Read opens it again
	text    []byte         // len is the space to read into
	known   []string       // the last reading's devices, in its order
	tree    tree           // what /sys says about known
	looped  []loop         // the loop devices of known
	counts  sample.DiskNormalizer
	noSysfs bool // that /sys is missing has been told
}

var _ sample.Source = (*Source)(nil)

// New opens the counters of the machine whose "/" is the folder root: "" or "/" for this one, "/hostfs" or the
// like in a container. It fails where /proc/diskstats cannot be opened.
func New(root string) (*Source, error) {
	if root == "" {
		root = "/"
	}
	s := &Source{root: filepath.Clean(root), text: make([]byte, firstText)}
	s.sys = sysfs{root: s.root}
	if err := s.open(); err != nil {
		return nil, err
	}
	return s, nil
}

// Close gives the open file back. Read opens it again.
func (s *Source) Close() error {
	if s.file == nil {
		return nil
	}
	file := s.file
	s.file = nil
	return file.Close()
}

// Read appends every block device to out.Disks, in the kernel's order, and sets out.At to the middle of the
// reading, which takes some microseconds. Lines that are not understood are left out and told in the error.
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

// learn takes over a changed set of devices. What vanished is forgotten with the old list.
func (s *Source) learn(disks []sample.Disk) error {
	s.known = make([]string, len(disks))
	for i := range disks {
		s.known[i] = disks[i].Name
	}
	s.tree = s.sys.tree(s.known)
	s.looped = s.loops(disks)
	if s.tree.fromNames && !s.noSysfs {
		s.noSysfs = true
		return fmt.Errorf("%s cannot be read, so disks are told from partitions by their names: make the host's /sys readable there", s.sys.block())
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

// readAll gives the whole of /proc/diskstats. An open file that fails is opened again, once.
func (s *Source) readAll() ([]byte, error) {
	if s.file != nil {
		text, err := s.readOpen()
		if err == nil || errors.Is(err, errTooLong) {
			return text, err
		}
		_ = s.Close()
	}
	if err := s.open(); err != nil {
		return nil, err
	}
	text, err := s.readOpen()
	if err != nil && !errors.Is(err, errTooLong) {
		_ = s.Close()
	}
	return text, err
}

var errTooLong = fmt.Errorf("/proc/diskstats is longer than %d MiB: the devices after that are left out", maxText>>20)

// readOpen reads until nothing is left: one read gives at most about 4 KiB, and less where the next disk with all its
// partitions does not fit (diskstats_show of block/genhd.c). After an error it gives the complete lines before it.
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
			return wholeLines(s.text[:size]), fmt.Errorf("disk counters stopped half-way: %w", err)
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
		return fmt.Errorf("no disk counters: %w; is /proc of the machine mounted there?", err)
	}
	s.file = file
	return nil
}

// oneLine joins what went wrong in one line, or is nil.
func oneLine(causes ...error) error {
	var problems sample.Problems
	for _, cause := range causes {
		problems.Add(cause)
	}
	return problems.Err()
}
