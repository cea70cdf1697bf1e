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
	got, err := t.ask(&traceQuestion{op: opTrace, want: want}, loadWait)
	if err != nil {
		return nil, err
	}
	var a traceAnswer
	err = a.parse(got.body)
	descriptors := got.descriptors
	switch {
	case err != nil:
	case a.handle == 0:
		err = errors.New(a.reason)
	case len(descriptors) == a.descriptors():
		memory := bpf.Memory{EventBytes: int(a.eventBytes), Disks: a.disks}
		rest := descriptors
		if a.eventBytes > 0 {
			memory.Events, memory.Counters, rest = rest[0], rest[1], rest[2:]
		}
		if a.disks {
			memory.Cells, memory.Directory = rest[0], rest[1]
		}
		return &traced{
			tracer: t, life: got.life, handle: a.handle, descriptors: descriptors, memory: memory, lacks: a.lacks,
		}, nil
	default:
		err = errFrame
	}
	closeAll(descriptors)
	return nil, err
}

func (t *Tracer) ask(q *traceQuestion, wait time.Duration) (answer, error) {
	return t.connection.ask(q.op, func(number uint32) []byte {
		q.number = number
		return q.append(nil)
	}, wait)
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
func (t *traced) ask(q *traceQuestion) error {
	if err := t.tracer.over(t.life); err != nil {
		return err
	}
	q.handle = t.handle
	a, err := t.tracer.ask(q, answerWait)
	closeAll(a.descriptors) // such answers have none
	if err != nil {
		return err
	}
	d := decoder{rest: a.body}
	if failed := d.errno(); d.end() == nil && failed != 0 {
		return failed
	}
	return d.end()
}

// SetJob implements bpf.Tracing.
func (t *traced) SetJob(slot, generation uint32) error {
	return t.ask(&traceQuestion{op: opJob, slot: slot, generation: generation})
}

// Adopt implements bpf.Tracing.
func (t *traced) Adopt(slot, generation uint32, pids []int) error {
	for some := range slices.Chunk(pids, maxAdopted) {
		if err := t.ask(&traceQuestion{op: opAdopt, slot: slot, generation: generation, pids: some}); err != nil {
			return err
		}
	}
	return nil
}

// Flush implements bpf.Tracing.
func (t *traced) Flush() error { return t.ask(&traceQuestion{op: opFlush}) }

// Report implements bpf.Tracing.
func (t *traced) Report() error { return t.ask(&traceQuestion{op: opReport}) }

// Ended implements bpf.Tracing. It does not wait.
func (t *traced) Ended() error { return t.tracer.over(t.life) }

// Close ends this tracing.
func (t *traced) Close() error {
	err := t.ask(&traceQuestion{op: opUntrace})
	closeAll(t.descriptors)
	t.descriptors = nil
	if t.tracer.over(t.life) != nil || errors.Is(err, syscall.EBADF) {
		return nil // it ended with its helper
	}
	return err
}
