package events

import "time"

// Storms notices when several slow windows read from one disk at once: an I/O storm. The zero value is ready. It is not safe
// for concurrent use.
type Storms struct {
	until map[string]time.Duration // by disk, the end of the last slow window of its storm
}

// mostStorms bounds Storms.until. No machine has more disks.
const mostStorms = 1024

// Look is told that a slow window that lasted until a moment read from a disk while another one did, which it first did at
// from. It says whether a storm began: one goes on for as long as slow windows that overlap read from the disk, and is
// told once.
func (s *Storms) Look(disk string, from, until time.Duration) (began bool) {
	last, known := s.until[disk]
	if !known && len(s.until) >= mostStorms {
		s.until = nil
	}
	if s.until == nil {
		s.until = map[string]time.Duration{}
	}
	s.until[disk] = max(last, until)
	return !known || from >= last
}
