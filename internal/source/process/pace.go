package process

import "time"

// What an open window or a load under way needs is read at the interval, everything else once a second. A job of more
// than maxReads processes is read once a second in any case, because a process takes about 3 us. All that is read once
// a second is read in the same round.
const (
	maxReads = 384
	maxScans = 512 // processes whose children are listed, a second
	// edgeInterval is the minimum between two readings of a job that is read once a second. The ends of windows are later
	// than the last reading by that at most.
	edgeInterval = 500 * time.Millisecond
)

// A client of the API may begin and end thousands of windows a second, each of a job that is new here. So all jobs
// share how many processes are found in a second. A job of more is complete some seconds later.
const (
	findRate  = 1024 // processes opened, or lists of children read, a second
	findBurst = 2048
)

// findings are how many processes may be found now.
type findings struct {
	left float64
	at   time.Duration // Stamp.Mono of left; 0 before the first
}

// take reports whether one more may be found.
func (f *findings) take(now time.Duration) bool {
	if f.at == 0 {
		f.left = findBurst
	} else {
		f.left = max(f.left, min(findBurst, f.left+findRate*(now-f.at).Seconds()))
	}
	f.at = now
	if f.left < 1 {
		return false
	}
	f.left--
	return true
}

// pace sets which jobs are read once a second: those that no window needs. What their threads do meanwhile is in the
// scheduler's events, or in moments.
func (s *Source) pace(now time.Duration) {
	if s.fullRound = now-s.fullAt >= scanInterval; s.fullRound {
		s.fullAt = now
	}
	for _, j := range s.jobs {
		j.rarely = j.rare && now >= j.stirring.until
	}
}

// due reports whether a job is read in a round. full is whether it is one in which all are.
func (j *job) due(full, edge bool, now time.Duration) bool {
	return full || !j.rarely && len(j.members) <= maxReads || edge && now-j.readAt >= edgeInterval
}
