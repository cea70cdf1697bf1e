// Package schedule reads what the scheduler does with the threads of followed jobs, with eBPF programs on its
// tracepoints. docs/internals/schedule.md describes what is traced and its limits.
package schedule

//go:generate ../../../hack/bpf.sh sched

import "time"

const (
	// MaxJobs is the number of jobs that can be followed at a time: process.MaxJobs.
	MaxJobs = 80

	// maxEvents is the most events of one Read. The rest stays in the buffer of the kernel for the next one.
	maxEvents = 1 << 16

	// ringDelay is the time after which an event is certain to be in the buffer: a program takes a few microseconds from
	// its reading of the clock to the end of its record.
	ringDelay = 50 * time.Microsecond

	// longPause is LONG_PAUSE of bpf/state.bpf.h.
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

// Tracing is what follows threads in the kernel: a Tracer, or one in another process.
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
	// Lacks lists what is not known, as the kernel refused a part of the programs.
	Lacks() []string
	// Ended returns why there are no events any more; nil if there are.
	Ended() error
	Close() error
}

// Memory are the descriptors of the maps events and counters in this process, for mmap(2), and the size of the first
// one in bytes.
type Memory struct {
	Events, Counters int
	EventBytes       int
}

// Opener opens a Tracing.
type Opener func() (Tracing, error)

var defaults = options{ringBytes: 4 << 20, jobBudget: 5000, allBudget: 20000, mergeBudget: 1250}

// Supported returns why the scheduler cannot be followed here, or nil, and what is not known as the kernel refuses a
// part. root is where the host's files are, "" for "/".
func Supported(root string) (lacks []string, err error) {
	t, err := newTracer(root, defaults)
	if err != nil {
		return nil, err
	}
	return t.Lacks(), t.Close()
}
