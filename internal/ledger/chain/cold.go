package chain

import "time"

// A thread that comes back from a pause finds less of its code and data in the caches, and runs slower for a while. How
// much depends on the program, and no counter of a virtual machine shows it. The share is what BenchmarkAfterPause
// measures in the middle for other kinds of work (docs/internals/schedule.md).
const (
	coldPause = time.Millisecond      // the shortest pause that counts
	coldWork  = 10 * time.Millisecond // of running after it
	coldShare = 0.1                   // of that running
)

// cool notes how long a segment is without storage. After a pause that would not be there, the thread runs slower.
func (th *thread) cool(s *segment, without time.Duration) {
	if s.kind != running && s.to-s.from-without >= coldPause {
		th.cold = coldWork
	}
}

// warm sets how much of a running segment is due to such a pause before it.
func (th *thread) warm(s *segment) {
	if s.kind != running || th.cold <= 0 {
		return
	}
	length := s.to - s.from
	share := min(1, float64(th.cold)/float64(length))
	s.slow = float32(coldShare * share * (1 - float64(s.fetch)))
	th.cold -= length
}
