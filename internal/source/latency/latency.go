// Package latency counts how long the operations of block devices take, with eBPF programs on the tracepoints of the
// block layer. docs/internals/latency.md describes what is counted and its limits.
package latency

//go:generate ../../../hack/bpf.sh latency

import (
	"github.com/stallspan/stallspan/internal/sample"
	"github.com/stallspan/stallspan/internal/source/schedule"
)

// Sizes that bpf/latency.bpf.c has, too.
const (
	buckets   = sample.LatencyBuckets
	bounds    = 128
	cells     = 256
	shards    = 8
	cellWords = 8 + buckets

	cellBytes      = 8 * cellWords
	keyBytes       = 8
	directoryHead  = 32 // bytes before the keys
	directoryBytes = directoryHead + cells*keyBytes
)

// operations are in the order of bpf/latency.bpf.c.
var operations = [...]sample.Operation{
	sample.ReadOperation, sample.WriteOperation, sample.FlushOperation, sample.DiscardOperation,
}

// Tracing is what counts in the kernel: a Tracer, or one in another process.
type Tracing interface {
	// Memory is what it shares with its Source.
	Memory() Memory
	// Lacks lists what is not known, as the kernel refused a part of the programs.
	Lacks() []string
	// Ended returns why nothing is counted any more; nil if it is.
	Ended() error
	Close() error
}

// Memory are the descriptors of the maps cells and directory in this process, for mmap(2).
type Memory struct{ Cells, Directory int }

// Opener opens a Tracing. With a schedule.Tracing, it also counts by the jobs whose threads that one follows.
type Opener func(with schedule.Tracing) (Tracing, error)

// Supported returns why nothing can be counted here, or nil, and what is not known as the kernel refuses a part. root
// is where the host's files are, "" for "/".
func Supported(root string) (lacks []string, err error) {
	with, err := schedule.Local(root)()
	if err == nil {
		defer func() { _ = with.Close() }()
	} // else nothing is counted by job, for which the scheduler's source has the reason
	t, err := newTracer(root, with)
	if err != nil {
		return nil, err
	}
	return t.Lacks(), t.Close()
}
