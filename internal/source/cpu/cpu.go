// Package cpu reads what each core has done, from /proc/stat (Documentation/filesystems/proc.rst, section 1.8).
package cpu

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/kernfile"
)

const (
	// firstBuffer holds the core lines of about fifty cores.
	firstBuffer = 4 << 10
	// largestBuffer holds the core lines of 8192 cores, the most that Linux can be built for.
	largestBuffer = 2 << 20
)

// Source reads one sample.Core for each core that is online; the sum line "cpu" is left out. It keeps the file
// open and its buffer, and is not safe for concurrent use.
//
// The kernel counts in ticks of USER_HZ, which is 100 a second on every machine Linux and Go run on, whatever its
// own timer frequency: the times are exact to 10 ms.
type Source struct {
	path   string
	file   *kernfile.File
	buf    []byte
	parser parser
}

// New prepares a source that reads root+"/proc/stat"; root is "" or "/" for this machine. Nothing is opened yet.
func New(root string) *Source {
	return &Source{path: filepath.Join("/", root, "proc/stat"), buf: make([]byte, firstBuffer)}
}

// Read appends one Core a core that is online, in the kernel's order; cores may come and go between two readings.
func (s *Source) Read(out *sample.Sample) error {
	wasOpen := s.file != nil
	out.At = sample.Now()
	lines, err := s.lines()
	if err != nil && wasOpen { // the file was replaced under us: once more, with a new one
		out.At = sample.Now()
		lines, err = s.lines()
	}
	if err != nil {
		return fmt.Errorf("cannot read the cores' times, check that %s is mounted and readable: %w", s.path, err)
	}
	cores, err := s.parser.parse(out.Cores, lines)
	out.Cores = cores
	if err == nil && len(cores) == 0 {
		err = errors.New("it has no line for any core")
	}
	if err != nil {
		return fmt.Errorf("%s is not what a Linux kernel prints, check what is mounted there: %w", s.path, err)
	}
	return nil
}

// Close gives the kept file back. A later Read opens it again.
func (s *Source) Close() {
	if s.file != nil {
		_ = s.file.Close() // it was only read from: there is nothing to lose
		s.file = nil
	}
}

// lines is the beginning of the file with all its core lines. They come first, and what follows is longer (a
// number for each interrupt line), so it is read no further than the buffer reaches, and the buffer grows only
// while it ends in a core line. The kernel makes the text up in one go, at the read at offset 0: what a later read
// adds belongs to the same moment.
func (s *Source) lines() ([]byte, error) {
	if s.file == nil {
		file, err := kernfile.Open(s.path)
		if err != nil {
			return nil, err
		}
		s.file = file
	}
	n := 0
	for {
		m, err := s.file.ReadAt(s.buf[n:], int64(n))
		n += m
		if err != nil {
			s.Close()
			return nil, err
		}
		lines, complete := coreLines(s.buf[:n])
		if complete || n < len(s.buf) {
			return lines, nil
		}
		if len(s.buf) >= largestBuffer {
			return nil, fmt.Errorf("its core lines are longer than %d bytes", largestBuffer)
		}
		s.buf = append(s.buf, make([]byte, len(s.buf))...)
	}
}
