// Package moments looks at the threads of jobs at random moments: what each of them is in, as /proc shows it. It needs
// no rights for a user's own processes. docs/internals/moments.md has the method and its limits.
package moments

import "time"

const (
	// The mean time between two moments of a job is firstGap when a window begins, and grows with the time since then to
	// 1/perAge of it, up to lastGap. So a window of any length has some hundred moments soon. It is idleGap for a job
	// without a window, and more with many jobs. Looks at a fixed rate would beat with what programs do.
	firstGap = 4 * time.Millisecond
	lastGap  = 30 * time.Millisecond
	perAge   = 250
	idleGap  = 100 * time.Millisecond
	fewJobs  = 8 // that are looked at so often without a window

	// Of the other threads of a job, those that were active within activeFor are looked at in turn, at most maxActive at
	// a moment, and maxIdle of the rest: as many as of the active ones if these are a crowd. A look takes about 10 us.
	maxActive = 8
	maxIdle   = 2
	crowd     = 100
	activeFor = time.Second
	readsFor  = 5 * time.Second

	// The threads of a job are listed every listEvery, of at most listAtOnce processes at a time, and after listAgain if
	// none of those that are known does anything.
	listEvery  = 500 * time.Millisecond
	listIdle   = 10 * time.Second      // of a job without a window
	listAgain  = 30 * time.Millisecond // the first time
	listAtOnce = 8

	// Children are asked for of so many threads that are not the first of their process, and processes have so many
	// ancestors.
	maxForking = 64
	maxDepth   = 16

	// Files of threads stay open while they are read again within openFor, at most maxOpen of them.
	openFor = 3 * time.Second
	maxOpen = 512

	maxJobs    = 80
	maxLeaders = 64   // of a job
	maxThreads = 2048 // of a job
	maxHeld    = 4096 // moments of all jobs between two readings

	// The share of its time that a thread is in the kernel is known in steps of 1/shareSteps. It is 0 before it has run
	// for some priorTicks.
	shareSteps = 20
	priorTicks = 5

	// maxRead is the longest time in the kernel to read a byte, in ns. Half of it counts as work to fetch data.
	maxRead = 100

	// A thread spins if it was seen to run in all but one of the last spinLooks looks, or in poolRuns of 100 if it does
	// not read and others of its process do.
	spinLooks = 64
	poolRuns  = 75

	// yieldTicks of 10 ms is how long a thread runs until it is judged whether that is mostly in the kernel.
	yieldTicks = 10

	// stuckAfter is how long a look may take. One that takes longer is given up, and its thread left out, as the kernel
	// waits with it: see procfile.
	stuckAfter = 2 * time.Second
)
