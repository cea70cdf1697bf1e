package netfs

import (
	"bytes"
	"errors"
	"io/fs"
	"strconv"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// longestStep is the longest time between two samples for which the number of waiting requests is assumed to stay.
const longestStep = 2 * time.Second

// openFUSE finds the counter of a connection, which the minor device number of the mount names
// (Documentation/filesystems/fuse.rst). Only root and the user who mounted it may read it.
func (s *Source) openFUSE(m *mounted) {
	m.waiting, m.sampled = s.connection(m)+"/waiting", 0
}

func (s *Source) connection(m *mounted) string {
	return s.path("sys/fs/fuse/connections/" + strconv.FormatUint(uint64(m.Minor), 10))
}

// limits reads how many requests a connection takes.
func (s *Source) limits(m *mounted) {
	folder := s.connection(m)
	most, err1 := s.number(folder + "/max_background")
	congestion, err2 := s.number(folder + "/congestion_threshold")
	if err1 == nil && err2 == nil {
		m.MaxBackground, m.Congestion = most, congestion
		m.Has |= sample.HasMountLimits
	}
}

// errEnded means that a connection ended while it was read: then the kernel returns nothing (fs/fuse/control.c).
var errEnded = errors.New("the connection has ended")

// number returns the number in a small file.
func (s *Source) number(path string) (uint64, error) {
	text, err := kernfile.ReadPiece(path, s.small)
	if err != nil {
		return 0, err
	}
	if len(text) == 0 {
		return 0, errEnded
	}
	n, ok := kernfile.ParseUint(bytes.TrimSpace(text))
	if !ok {
		return 0, strconv.ErrSyntax
	}
	return n, nil
}

// gone reports whether a connection cannot be read any more: it has ended, or is another user's. One that was aborted
// is there until it is unmounted. Any other error may pass, as that of too many open files.
func gone(err error) bool {
	return errors.Is(err, errEnded) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)
}

// sample reads how many requests wait for the server, and adds them to the sum: half of the time since the previous
// sample with each of the two numbers.
func (s *Source) sample(m *mounted, now time.Duration) {
	if m.waiting == "" {
		return
	}
	waiting, err := s.number(m.waiting) // the file has to be opened each time: it has no pread
	if err != nil {
		if gone(err) {
			m.waiting = ""
		}
		return
	}
	if m.sampled == 0 {
		m.Has |= sample.HasMountWaiting
		s.limits(m)
	}
	if step := now - m.sampled; m.sampled > 0 && step > 0 && step <= longestStep {
		m.WaitingTime += time.Duration(float64(m.Waiting+waiting) / 2 * float64(step))
	}
	m.Waiting, m.sampled = waiting, now
}
