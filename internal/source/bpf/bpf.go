// Package bpf has the eBPF programs at the kernel's tracepoints. They follow what the scheduler does with the threads
// of jobs, and count how long the operations of disks take. docs/internals/schedule.md and docs/internals/latency.md
// describe what is traced and its limits.
package bpf

//go:generate ../../../hack/bpf.sh

import "time"

const (
	// MaxJobs is the number of jobs that can be followed at a time: process.MaxJobs.
	MaxJobs = 80

	// maxEvents is the most events of one Read. The rest stays in the buffer of the kernel for the next one.
	maxEvents = 1 << 16

	// ringDelay is the time after which an event is certain to be in the buffer: a program takes a few microseconds from
	// its reading of the clock to the end of its record.
	ringDelay = 50 * time.Microsecond

	// longPause is LONG_PAUSE of programs/state.bpf.h.
	longPause = 10 * time.Millisecond
)

// Options are for tests and for measurements.
type options struct {
	ringBytes int // size of the kernel's buffer; a power of two
	jobBudget int // events of one job in 100 ms above which its busy threads are summed
	allBudget int // the same for all jobs together
	// mergeBudget is how many events of one job in 100 ms, reported or not, have its waits for storage merged.
	mergeBudget int
}

var defaults = options{ringBytes: 4 << 20, jobBudget: 5000, allBudget: 20000, mergeBudget: 1250}

// Wanted is what a Tracing is for.
type Wanted struct {
	Threads bool // follow the threads of jobs
	Disks   bool // count how long disks take, with Threads for each job, too
}

// Tracing holds programs in the kernel: it is a Tracer, or one in another process.
type Tracing interface {
	// Memory is what it shares with its Source.
	Memory() Memory
	// SetJob gives a slot a generation, which begins a job. Generation 0 ends it.
	SetJob(slot, generation uint32) error
	// Adopt follows all threads of processes, for a job.
	Adopt(slot, generation uint32, pids []int) error
	// Flush has the kernel report the sums of threads that pause.
	Flush() error
	// Report has the kernel report the open connections of other network namespaces.
	Report() error
	// Lacks lists the wanted parts that the kernel refuses.
	Lacks() Refusals
	// Ended returns why the programs run no more; nil if they do.
	Ended() error
	Close() error
}

// Memory are the descriptors of maps in this process, for mmap(2).
type Memory struct {
	Events, Counters int // if threads are followed
	EventBytes       int // the size of events; 0 if threads are not followed
	Cells, Directory int // if Disks
	Disks            bool
}

// Opener opens a Tracing. A part that the kernel refuses is no error.
type Opener func(Wanted) (Tracing, error)

// Local returns an Opener of Tracers of this process. root is where the host's files are, "" for "/".
func Local(root string) Opener {
	return func(want Wanted) (Tracing, error) { return newTracer(root, want, defaults), nil }
}

// Supported lists the parts that the kernel refuses. root is where the host's files are, "" for "/".
func Supported(root string) Refusals {
	t := newTracer(root, Wanted{Threads: true, Disks: true}, defaults)
	defer func() { _ = t.Close() }() // it has nothing to lose
	return t.Lacks()
}
