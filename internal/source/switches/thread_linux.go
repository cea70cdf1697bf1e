package switches

import "time"

// thread is a followed thread.
type thread struct {
	tid, pid int
	job      *job
	name     string

	first   time.Duration // records before are older than what is known
	on      bool          // on a CPU; since says since when, 0 if that is unknown
	since   time.Duration // CLOCK_MONOTONIC
	pause   *pause        // that lasts; nil while it runs, and where it is unknown
	past    past
	often   float64     // runs in a second
	busy    float64     // share of the time on a CPU
	wakers  map[int]int // how often each thread was taken for the waker
	known   counters    // at the last reading
	hasRead bool        // known is set
	kernel  kernelShare
	ended   bool
}

// change is a change of state that is not reported yet.
type change struct {
	record
	thread  *thread
	pause   *pause        // that begins or ends
	running time.Duration // of switchedOut: for how long it ran
	began   time.Duration // of switchedOut: since when; 0 if unknown
}
