package chain

import "time"

// cold is how much more running is slower.
type cold time.Duration

// warm returns the share of a running segment that is due to the pause before it.
func (c *cold) warm(s *segment) float32 {
	if *c <= 0 {
		return 0
	}
	length := s.to - s.from
	share := min(1, float64(*c)/float64(length))
	*c -= cold(length)
	return float32(coldShare * share * (1 - float64(s.fetch)))
}

// coldness is how much more running of a thread is slower than without its last pause.
type coldness struct {
	disk    cold // the pause was for storage, or for a thread that waited for it
	network cold // or for what a peer sent
}

// cool notes how long a segment is in replays without storage, and also without waiting for peers. After a pause that
// would not be there, the thread runs slower.
func (th *thread) cool(s *segment, withoutDisk, withoutNetwork time.Duration) {
	if s.kind == running {
		return
	}
	length := s.to - s.from
	if length-withoutDisk >= coldPause {
		th.cold.disk = cold(coldWork)
	}
	if length-withoutNetwork >= coldPause {
		th.cold.network = cold(coldWork)
	}
}

// warm sets how much of a running segment is due to such a pause before it.
func (th *thread) warm(s *segment) {
	if s.kind == running {
		s.slow, s.slowNetwork = th.cold.disk.warm(s), th.cold.network.warm(s)
	}
}
