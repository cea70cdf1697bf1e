//go:build amd64 || arm64

package helper

import (
	"errors"
	"os"
	"runtime/debug"
	"sync"
	"syscall"

	"github.com/stallspan/stallspan/internal/source/bpf"
)

// maxTracings bounds those at a time: one may be opened while the source still holds the one before.
const maxTracings = 2

// tracings answers the questions to the tracer.
type tracings struct {
	open func(bpf.Wanted) (bpf.Tracing, error)
	send func(frame []byte, descriptors []int) error

	mu      sync.Mutex
	held    map[uint32]bpf.Tracing // by handle; nil for one that is being loaded
	newest  uint32                 // handle: no other helper gives the same
	loading sync.WaitGroup
}

func serveTracing(fd int, root string) error {
	s := &tracings{open: bpf.Local(root), held: map[uint32]bpf.Tracing{}, newest: uint32(os.Getpid()) << 8,
		send: func(frame []byte, descriptors []int) error { return send(fd, frame, descriptors) }}
	return serve(fd, s.answer)
}

// answer sends the answer to a question. It does not wait while programs are loaded: other questions come meanwhile.
func (s *tracings) answer(frame []byte) error {
	var q question
	if err := q.parse(frame); err != nil {
		return err
	}
	var a content
	reply := func(descriptors []int) error { return s.send(a.append(header(nil, q.op, q.number), q.op), descriptors) }
	if !q.op.traces() {
		return errFrame
	}
	if q.op != opTrace {
		a.failed = number(s.do(&q))
		return reply(nil)
	}
	handle, ok := s.reserve()
	if !ok {
		a.reason = "too many programs are loaded"
		return reply(nil)
	}
	s.loading.Go(func() { // it ends with the process
		var descriptors []int
		a, descriptors = s.trace(handle, q.want)
		_ = reply(descriptors) // without an agent, the next question fails, too
	})
	return nil
}

// reserve returns a handle for a tracing, if there is room for one.
func (s *tracings) reserve() (handle uint32, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.held) >= maxTracings {
		return 0, false
	}
	s.newest++
	s.held[s.newest] = nil
	return s.newest, true
}

// trace loads programs.
func (s *tracings) trace(handle uint32, want bpf.Wanted) (a content, descriptors []int) {
	t, err := s.open(want)
	debug.FreeOSMemory() // the kernel's types take 30 MB while programs are loaded
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		delete(s.held, handle)
		return content{reason: err.Error()}, nil
	}
	s.held[handle] = t
	memory := t.Memory()
	if memory.EventBytes > 0 {
		descriptors = append(descriptors, memory.Events, memory.Counters)
	}
	if memory.Disks {
		descriptors = append(descriptors, memory.Cells, memory.Directory)
	}
	a = content{handle: handle, eventBytes: uint32(memory.EventBytes), disks: memory.Disks, lacks: t.Lacks()}
	return a, descriptors
}

// do answers the other questions.
func (s *tracings) do(q *question) error {
	s.mu.Lock()
	t := s.held[q.handle]
	if q.op == opUntrace && t != nil {
		delete(s.held, q.handle)
	}
	s.mu.Unlock()
	if t == nil {
		return syscall.EBADF
	}
	switch q.op {
	case opJob:
		return t.SetJob(q.slot, q.generation)
	case opAdopt:
		return t.Adopt(q.slot, q.generation, q.pids)
	case opFlush:
		return t.Flush()
	case opReport:
		return t.Report()
	case opUntrace:
		return t.Close()
	}
	return errors.ErrUnsupported // parse refuses other questions
}
