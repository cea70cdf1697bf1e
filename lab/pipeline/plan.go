// Package pipeline is a training program for the scenarios. Its workers read files, decode them with real CPU work and
// queue batches. Its emulated accelerator computes each batch. It logs what every step waited for. It runs as a process
// of its own (Main) and gets Plans on its standard input; Program starts one and communicates with it.
package pipeline

import "time"

// Reading is how workers read.
type Reading string

const (
	Buffered Reading = "buffered" // pread through the page cache
	Mapped   Reading = "mmap"
	Direct   Reading = "direct"   // O_DIRECT
	Uring    Reading = "io_uring" // O_DIRECT, Depth reads in flight
)

// Style is how batches are made.
type Style string

const (
	Serial Style = "serial" // the training thread itself reads and decodes: no prefetch
	// worker processes make whole batches in turn, Prefetch batches ahead each; delivered in order
	PyTorch Style = "pytorch"
	TFData  Style = "tfdata" // worker threads take records from one list; a buffer of Prefetch batches
)

// Plan is the work of one window: an epoch, or the load of a model.
type Plan struct {
	Seed    uint64
	Files   []string // read in a shuffled order, each record at most once
	Record  int      // bytes
	Reading Reading
	Depth   int // of io_uring

	Style    Style
	Workers  int
	Prefetch int
	Batch    int // records per step
	Steps    int

	Decode  time.Duration // CPU time per record: a fixed amount of real work, calibrated for this machine
	Compute time.Duration // accelerator time per step
	Spin    bool          // spin while the accelerator computes, as CUDA does by default; otherwise sleep
	Sync    time.Duration // sleep per step with an idle accelerator, like a wait for other nodes

	CheckpointEvery int   // steps; 0 for none
	CheckpointBytes int64 // written and fsynced while the accelerator is idle
	CheckpointDir   string

	// Load is a model file to read from start to end instead of an epoch. It uses Reading, Depth, Record (0 is 1 MiB),
	// Workers (threads with a range each; one is the training thread) and Decode.
	Load string
}

// Truth is what happened by the program's own clocks (CLOCK_MONOTONIC). A step's wait for its batch is charged to the
// phase of the worker that was making the batch.
type Truth struct {
	Steps    int
	Records  int
	Bytes    int64
	Duration time.Duration
	Busy     time.Duration // the accelerator computed
	Read     time.Duration // the training thread waited, and the worker was reading
	Decode   time.Duration // the same, decoding
	Write    time.Duration // of checkpoints
	Sync     time.Duration
	Ready    time.Duration // the batch was ready, and the training thread waited for a CPU
	Other    time.Duration // the rest of Duration: idle workers, bookkeeping

	// Of all workers together:
	ReadTime, ReadBlocked, ReadReady, ReadCPU time.Duration // thread time in reads: all, asleep, runnable, running
	DecodeTime, DecodeReady                   time.Duration

	Checksum uint32 // of the records, independent of the kind of reading
}
