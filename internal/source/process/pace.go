package process

import (
	"cmp"
	"slices"
	"time"
)

// A reading takes about 3 us a process, and a scan 20 us. So both have a budget for all jobs together. Small jobs take
// what they need, and large ones share the rest: each is read in every so many rounds, as a whole, because what ended
// children leave to their parents shows only in a reading of both (inherit.go).
const (
	maxReads = 384 // processes in a round
	maxScans = 512 // processes whose children are listed, a second
	// edgeInterval is the minimum between two readings of a job that is not read in every round. The ends of windows are
	// later than the last reading by that at most.
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

// pace sets in which rounds each job is read.
func (s *Source) pace(now time.Duration) {
	s.bySize = append(s.bySize[:0], s.jobs...)
	bySize := s.bySize
	for _, j := range bySize {
		j.reads = s.toRead(j)
		j.rarely = j.rare && s.idle.known && len(j.members) > 0 && j.members[0].traced &&
			now >= j.stirring.until
	}
	// All that are read once a second are read in the same round: the others then make few system calls.
	if s.rareRound = now-s.rareAt >= scanInterval; s.rareRound {
		s.rareAt = now
	}
	slices.SortStableFunc(bySize, func(a, b *job) int { return cmp.Compare(a.reads, b.reads) })
	left := maxReads
	for i, j := range bySize {
		share := max(1, left/(len(bySize)-i))
		n := j.reads
		j.every = uint64(max(1, (n+share-1)/share))
		left -= min(n, share)
	}
}

// awake is how long no round is left out after an edge. A window that began or ended there waits for readings from
// after it, which come with those of the GPUs.
const awake = 10 * time.Second

// rests reports whether no job is to be read in a round that is not for an edge: all are read rarely, and were read
// less than a second ago. What the scheduler reports meanwhile waits until the next round that reads jobs.
func (s *Source) rests(now time.Duration) bool {
	if len(s.jobs) == 0 || s.candidates.wanted || now-s.rareAt >= scanInterval || s.idle.activity == nil ||
		s.edgeAt > 0 && now-s.edgeAt < awake {
		return false
	}
	read := func(j *job) bool { return !j.rare || !j.rarely || now < j.stirring.until }
	return !slices.ContainsFunc(s.jobs, read) && !s.idle.activity.Crowded()
}

// due reports whether a job is read in a round. rare is whether it is one in which those are that are read rarely.
func (j *job) due(round uint64, rare, edge bool, now time.Duration) bool {
	if j.rarely {
		return rare || edge && now-j.readAt >= edgeInterval
	}
	return j.every <= 1 || round >= j.round+j.every || edge && now-j.readAt >= edgeInterval
}
