package netfs

import (
	"bytes"
	"strconv"
	"time"

	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/kernfile"
)

// longestStep is the longest time between two samples for which the number of waiting requests is taken to stay.
const longestStep = 2 * time.Second

// openFUSE opens the counter of a connection, which the minor device number of the mount names
// (Documentation/filesystems/fuse.rst). Only root and the user who mounted it may read it.
func (s *Source) openFUSE(m *mounted) {
	folder := s.path("sys/fs/fuse/connections/" + strconv.FormatUint(uint64(m.Minor), 10))
	file, err := kernfile.OpenBrief(folder + "/waiting")
	if err != nil {
		return
	}
	m.waiting, m.sampled = file, 0
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
func (m *mounted) sample(now time.Duration) {
	if m.waiting == nil {
		return
	}
	var text [24]byte
	n, err := m.waiting.ReadAt(text[:], 0)
	waiting, ok := kernfile.ParseUint(bytes.TrimSpace(text[:n]))
	if err != nil || !ok { // the connection has ended
		m.close()
		return
	}
	if step := now - m.sampled; m.sampled > 0 && step > 0 && step <= longestStep {
		m.WaitingTime += time.Duration(float64(m.Waiting+waiting) / 2 * float64(step))
	}
	m.Waiting, m.sampled = waiting, now
}
