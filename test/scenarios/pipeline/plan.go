// Package pipeline is a training program for the scenarios: workers that read files, decode them with real work of the
// CPU and queue batches, an accelerator that computes each batch, and a log of what every step waited for. It runs as a
// process of its own (Main), told what to do by Plans on its standard input; Program starts one and speaks with it.
package pipeline

import "time"

// Reading is how workers read.
type Reading string

const (
	Buffered Reading = "buffered" // pread through the page cache
	Mapped   Reading = "mmap"
	Direct   Reading = "direct"   // O_DIRECT
	Uring    Reading = "io_uring" // O_DIRECT, Depth reads under way at once
)

// Style is how batches are made.
type Style string

const (
	Serial  Style = "serial"  // the training thread itself reads and decodes: no prefetch
	PyTorch Style = "pytorch" // worker processes, each makes whole batches in turn; Prefetch batches ahead a worker; delivered in order
	TFData  Style = "tfdata"  // worker threads take records from one list; a buffer of Prefetch batches ahead
)

// Plan is one window's work: an epoch, or the load of a model.
type Plan struct {
	Seed    uint64
	Files   []string // read in a shuffled order, records at pseudo-random places, none twice
	Record  int      // bytes a record
	Reading Reading
	Depth   int // of io_uring

	Style    Style
	Workers  int
	Prefetch int
	Batch    int // records a step
	Steps    int

	Decode  time.Duration // of CPU a record: real work, the same amount each time, calibrated once for this machine
	Compute time.Duration // of the accelerator a step
	Spin    bool          // the training thread spins while the accelerator computes, as CUDA does; otherwise it sleeps
	Sync    time.Duration // slept a step with the accelerator idle, as one waits for other nodes

	CheckpointEvery int   // steps; 0 for none
	CheckpointBytes int64 // written and fsynced while the accelerator idles
	CheckpointDir   string

	// Load, instead of an epoch, is a model file that is read from begin to end: of the above, Reading, Depth, Record (of
	// 1 MiB if 0), Workers (a range of the file each, threads; one is the training thread) and Decode count.
	Load string
}

// Truth is what really happened, by the program's own clocks (CLOCK_MONOTONIC). Each step's wait for its batch is given
// to the phase in which the worker that was making that batch then was.
type Truth struct {
	Steps    int
	Records  int
	Bytes    int64
	Duration time.Duration
	Busy     time.Duration // the accelerator computed
	Read     time.Duration // the training thread waited, and the worker was reading
	Decode   time.Duration // ... was decoding
	Write    time.Duration // checkpoints
	Sync     time.Duration
	Ready    time.Duration // the batch was there, and the training thread found no CPU to take it
	Other    time.Duration // what is left of Duration: the worker had nothing to do, bookkeeping

	// Of all workers together:
	ReadTime, ReadBlocked, ReadReady, ReadCPU time.Duration // thread time in reads: all, asleep, ready without a CPU, on one
	DecodeTime, DecodeReady                   time.Duration

	Checksum uint32 // of the records: the same whatever they were read from
}
