// Package switches follows the threads of a user's own jobs without rights: with perf events that report each switch
// (PERF_RECORD_SWITCH). These do not say what a thread pauses for, nor who woke it. The former is looked up in /proc
// while a pause lasts, and the latter is guessed. docs/internals/switches.md has the method and its limits.
package switches

import "time"

const (
	// pollEvery is how often pauses are looked at. Each pause that lasts longer is seen at least once.
	pollEvery = 20 * time.Millisecond

	// idleAfter is how long nothing happens until the thread that looks rests. A program whose threads pause for longer
	// than pollEvery makes no record between two polls.
	idleAfter = time.Second

	// maxLooks is the most pauses that are looked at in one poll, and maxReads the most threads whose counters are read
	// in one reading: a look takes about 10 us.
	maxLooks = 16
	maxReads = 64

	// ringDelay is how old a record is when it is certain to be in the buffer.
	ringDelay = 50 * time.Microsecond

	maxJobs    = 64
	maxThreads = 4096    // of all jobs
	maxEvents  = 1024    // perf events that are open: one for each CPU and thread that a job has when it is followed
	maxRecords = 1 << 16 // between two readings

	// A job that switches more often than maxRate, in a second, for maxBusy readings in turn is not followed for rest. A
	// switch costs about 3 us, with its share of the ledger.
	maxRate = 10000
	maxBusy = 5
	rest    = 10 * time.Second
)
