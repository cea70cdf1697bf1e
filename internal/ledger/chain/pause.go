package chain

import (
	"time"

	"github.com/stallspan/stallspan/internal/sample"
)

// pauseOf says why a thread leaves its CPU, if that is known before it comes back.
func (t *Timeline) pauseOf(e *sample.ThreadEvent) pause {
	p := pause{kind: asleep, call: callOf(t.arch, e.Syscall)}
	switch {
	case e.State == sample.StateReady:
		p.kind = ready
	case e.IOWait, e.State == sample.StateBlocked:
		p.kind = storage
	case e.State == sample.StateAsleep && p.onFile(e.File):
		p.kind = storage
	}
	p.reason = t.reasons.of(reasonOf(&p, e))
	return p
}

// onFile reports whether a call waits for the data of a file: on a network or FUSE file system a thread sleeps in a
// state in which signals wake it.
func (p *pause) onFile(file sample.FileKind) bool {
	switch p.call {
	case aioCall:
		return true
	case fileCall:
		return file == sample.RegularFile || file == sample.Directory || file == sample.BlockDevice
	}
	return false
}

// causeOf returns the followed thread that ended a pause, or 0. One that waits for a block device is woken from
// interrupts, and the thread that ran there did not cause it. One that is blocked otherwise and is woken by a thread
// waited for a lock that it held.
func (t *Timeline) causeOf(p *pause, e *sample.ThreadEvent) int {
	if e.Waker == 0 || e.Waker == e.TID || t.threads[e.Waker] == nil {
		return 0
	}
	switch e.WakerKind {
	case sample.UserThread:
	case sample.SoftIRQ: // a packet on the way to this machine
		if p.kind == storage {
			return 0
		}
	default:
		return 0
	}
	if p.kind == storage && p.call == aioCall {
		return 0
	}
	return e.Waker
}

// habit returns what usually ends the thread's pauses in that kind of call.
func (th *thread) habit(c call) (waker int, known bool) {
	h := th.usual[int(c)%len(th.usual)]
	return int(h.waker), h.known && h.call == c
}

// Bounds of the kernel's share of running segments.
const (
	shareMemory = 2 * time.Second // of running time; older evidence fades
	shareGuess  = 40 * time.Millisecond

	// This work of the kernel stays with the data in memory, in ns for a byte.
	copyCost = 0.2  // to copy it out of the page cache
	mapCost  = 0.03 // to map its page
)

// share learns how much of a thread's work is the kernel's to fetch data. The kernel counts user and system time in
// scheduler ticks, so that only sums mean something.
type share struct {
	user, system time.Duration // in segments that fetched data
	faulted      bool          // the last pause was for a page that storage had to deliver
	recent       float64       // share of the last running time that was such work, a moving mean
}

// recentTime is the running time over which recent fades.
const recentTime = 20 * time.Millisecond

// learn returns the share of a running segment of that length that was work of the kernel to fetch data.
func (s *share) learn(all *share, length time.Duration, e *sample.ThreadEvent) float32 {
	if length <= 0 {
		return 0
	}
	faults := e.IOWait && e.Syscall == sample.NoSyscall
	fetch := 0.0
	if e.Fetched > 0 || faults || s.faulted {
		fetch = s.fetch(all, length, e)
	}
	s.faulted = faults
	weight := min(1, length.Seconds()/recentTime.Seconds())
	s.recent += (fetch - s.recent) * weight
	return float32(fetch)
}

func (s *share) fetch(all *share, length time.Duration, e *sample.ThreadEvent) float64 {
	s.add(e.User, e.System)
	all.add(e.User, e.System)
	// The job's other threads stand in until this one is known.
	known := s.user + s.system
	weight := min(1, known.Seconds()/(4*shareGuess).Seconds())
	own := s.of()
	kernel := own*weight + all.of()*(1-weight)
	kept := float64(e.Chars)*copyCost + float64(e.Fetched-min(e.Fetched, e.Chars))*mapCost // ns
	return max(0, min(1, kernel-kept/float64(length)))
}

func (s *share) add(user, system time.Duration) {
	s.user += user
	s.system += system
	if sum := s.user + s.system; sum > shareMemory {
		kept := float64(shareMemory) / float64(sum)
		s.user = time.Duration(float64(s.user) * kept)
		s.system = time.Duration(float64(s.system) * kept)
	}
}

func (s *share) of() float64 {
	return (s.system + shareGuess/2).Seconds() / (s.user + s.system + shareGuess).Seconds()
}
