package netfs

import (
	"bytes"
	"strconv"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// maxSampled is how many mounts are sampled with each tick. Of more, each is sampled less often.
const maxSampled = 8

// longestStep is the longest time between two samples for which the number of waiting requests is assumed to stay.
const longestStep = 2 * time.Second

// openFUSE finds the counter of a connection, which the minor device number of the mount names
// (Documentation/filesystems/fuse.rst). Only root and the user who mounted it may read it.
func (s *Source) openFUSE(m *mounted) {
	folder := s.path("sys/fs/fuse/connections/" + strconv.FormatUint(uint64(m.Minor), 10))
	path := folder + "/waiting"
	if _, ok := s.number(path); !ok {
		return
	}
	m.waiting, m.sampled = path, 0
	m.Has |= sample.HasMountWaiting
	most, ok1 := s.number(folder + "/max_background")
	congestion, ok2 := s.number(folder + "/congestion_threshold")
	if ok1 && ok2 {
		m.MaxBackground, m.Congestion = most, congestion
		m.Has |= sample.HasMountLimits
	}
}

// number returns the number in a small file.
func (s *Source) number(path string) (uint64, bool) {
	text, err := kernfile.ReadPiece(path, s.small)
	if err != nil {
		return 0, false
	}
	return kernfile.ParseUint(bytes.TrimSpace(text))
}

// sample reads how many requests wait for the server, and adds them to the sum: half of the time since the previous
// sample with each of the two numbers.
func (s *Source) sample(m *mounted, now time.Duration) {
	if m.waiting == "" {
		return
	}
	waiting, ok := s.number(m.waiting) // the file has to be opened each time: it has no pread
	if !ok {                           // the connection has ended
		m.waiting = ""
		return
	}
	if step := now - m.sampled; m.sampled > 0 && step > 0 && step <= longestStep {
		m.WaitingTime += time.Duration(float64(m.Waiting+waiting) / 2 * float64(step))
	}
	m.Waiting, m.sampled = waiting, now
}
