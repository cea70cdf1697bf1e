// Package opens reports which files the threads of followed jobs open and close, with eBPF programs at the kernel's
// functions for both. docs/internals/opens.md describes what is reported and its limits.
package opens

//go:generate sh generate.sh

import (
	"time"

	"github.com/stallspan/stallspan/internal/source/schedule"
)

// Sizes that bpf/opens.bpf.c has, too.
const (
	pathBytes   = 1024
	endingBytes = 16
	headBytes   = 56
)

// MinSize is the size of the smallest files whose opens are reported with Options.Others, in bytes. Modules of Python
// and settings are mostly smaller, and pictures are mostly larger.
const MinSize = 16 << 10

// minModel is the same of files of models, without Options.Others: files with weights are not smaller.
const minModel = 1 << 20

// Event is an open or a close. A close is the last one: no descriptor and no mapping of that open is left. Files that
// are only read are reported from a size on, others whatever their size is. Closes are those of files of models.
type Event struct {
	At       time.Duration // Stamp.Mono
	PID      int
	Path     string // of an open: as the process that opens it sees it
	Device   uint64 // of the file system; stat has another one for files of btrfs and overlay
	Inode    uint64
	Size     int64
	Position int64 // of a close
	Close    bool
	Write    bool // open for writing; these are files of models only
	Model    bool // the name is one of a model's file
}

// Options say what is reported.
type Options struct {
	// Others has files reported that have not the name of a model's, too, if they are read by processes whose open files
	// this user may list.
	Others bool
}

// Tracing is what reports in the kernel: a Tracer, or one in another process.
type Tracing interface {
	// Memory is what it shares with its Source.
	Memory() Memory
	// Ended returns why nothing is reported any more; nil if it is.
	Ended() error
	Close() error
}

// Memory are the descriptors of the maps events and counters in this process, for mmap(2), and the size of the first
// one in bytes.
type Memory struct {
	Events, Counters int
	EventBytes       int
}

// Opener opens a Tracing for the threads that a schedule.Tracing follows.
type Opener func(with schedule.Tracing, o Options) (Tracing, error)
