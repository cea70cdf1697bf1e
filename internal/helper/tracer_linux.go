//go:build amd64 || arm64

package helper

import (
	"errors"
	"slices"
	"syscall"
	"time"

	"github.com/stallspan/stallspan/internal/source/bpf"
)

// loadWait is how long loading programs may take.
const loadWait = 30 * time.Second

// Tracer asks the helper that holds the BPF programs. It is safe for concurrent use.
type Tracer struct{ *connection }

// Open implements bpf.Opener. Meanwhile other questions are answered.
func (t *Tracer) Open(want bpf.Wanted) (bpf.Tracing, error) {
	a, err := t.ask(&question{op: opTrace, want: want}, loadWait)
	switch {
	case err != nil:
		return nil, err
	case a.handle == 0:
		err = errors.New(a.reason)
	case len(a.descriptors) != a.maps():
		err = t.errAnswer()
	default:
		memory := bpf.Memory{EventBytes: int(a.eventBytes), Disks: a.disks}
		rest := a.descriptors
		if a.eventBytes > 0 {
			memory.Events, memory.Counters, rest = rest[0], rest[1], rest[2:]
		}
		if a.disks {
			memory.Cells, memory.Directory = rest[0], rest[1]
		}
		return &traced{
			tracer: t, life: a.life, handle: a.handle, descriptors: a.descriptors, memory: memory, lacks: a.lacks,
		}, nil
	}
	closeAll(a.descriptors)
	return nil, err
}

// traced is a bpf.Tracing of the helper.
type traced struct {
	tracer      *Tracer
	life        uint64
	handle      uint32
	memory      bpf.Memory
	descriptors []int
	lacks       bpf.Refusals
}

// Lacks implements bpf.Tracing.
func (t *traced) Lacks() bpf.Refusals { return t.lacks }

// Memory implements bpf.Tracing.
func (t *traced) Memory() bpf.Memory { return t.memory }

// ask sends a question about this tracing, and returns the error that the helper had.
func (t *traced) ask(q question) error {
	if err := t.tracer.over(t.life); err != nil {
		return err
	}
	q.handle = t.handle
	a, err := t.tracer.ask(&q, answerWait)
	closeAll(a.descriptors) // such answers have none
	if err == nil && a.failed != 0 {
		err = a.failed
	}
	return err
}

// SetJob implements bpf.Tracing.
func (t *traced) SetJob(slot, generation uint32) error {
	return t.ask(question{op: opJob, slot: slot, generation: generation})
}

// Adopt implements bpf.Tracing.
func (t *traced) Adopt(slot, generation uint32, pids []int) error {
	for some := range slices.Chunk(pids, maxAdopted) {
		if err := t.ask(question{op: opAdopt, slot: slot, generation: generation, pids: some}); err != nil {
			return err
		}
	}
	return nil
}

// Flush implements bpf.Tracing.
func (t *traced) Flush() error { return t.ask(question{op: opFlush}) }

// Report implements bpf.Tracing.
func (t *traced) Report() error { return t.ask(question{op: opReport}) }

// Ended implements bpf.Tracing. It does not wait.
func (t *traced) Ended() error { return t.tracer.over(t.life) }

// Close ends this tracing.
func (t *traced) Close() error {
	err := t.ask(question{op: opUntrace})
	closeAll(t.descriptors)
	t.descriptors = nil
	if t.tracer.over(t.life) != nil || errors.Is(err, syscall.EBADF) {
		return nil // it ended with its helper
	}
	return err
}
