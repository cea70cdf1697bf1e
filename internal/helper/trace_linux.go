//go:build amd64 || arm64

package helper

import (
	"encoding/binary"
	"errors"
	"os"
	"runtime/debug"
	"sync"
	"syscall"

	"github.com/stallspan/stallspan/internal/source/bpf"
)

// Bounds of the tracer's questions and answers.
const (
	maxTracings = 2    // at a time: one may be opened while the source still holds the one before
	maxAdopted  = 1024 // processes of a question
)

// traceQuestion is a parsed question to the tracer.
type traceQuestion struct {
	op               op
	number           uint32
	want             bpf.Wanted
	handle           uint32
	slot, generation uint32
	pids             []int
}

// append adds the frame of a question.
func (q *traceQuestion) append(b []byte) []byte {
	b = header(b, q.op, q.number)
	if q.op == opTrace {
		return append(b, bits(q.want.Threads, q.want.Disks))
	}
	b = binary.LittleEndian.AppendUint32(b, q.handle)
	if q.op == opJob || q.op == opAdopt {
		b = binary.LittleEndian.AppendUint32(b, q.slot)
		b = binary.LittleEndian.AppendUint32(b, q.generation)
	}
	for _, pid := range q.pids {
		b = binary.LittleEndian.AppendUint32(b, uint32(pid))
	}
	return b
}

// parse takes a question from a frame, and accepts exactly what append makes.
func (q *traceQuestion) parse(frame []byte) error {
	d := decoder{}
	var err error
	if q.op, q.number, d.rest, err = split(frame); err != nil {
		return err
	}
	switch q.op {
	case opTrace:
		want := d.flags(2)
		q.want = bpf.Wanted{Threads: want&1 != 0, Disks: want&2 != 0}
		return d.end()
	case opJob, opAdopt, opFlush, opReport, opUntrace:
	default:
		return errFrame
	}
	q.handle = d.uint32()
	if q.op == opJob || q.op == opAdopt {
		q.slot, q.generation = d.uint32(), d.uint32()
		d.bad = d.bad || q.slot == 0 || q.slot > bpf.MaxJobs
	}
	if q.op == opAdopt {
		d.bad = d.bad || len(d.rest) == 0 || len(d.rest) > 4*maxAdopted
		for len(d.rest) > 0 && !d.bad {
			q.pids = append(q.pids, d.pid())
		}
	}
	return d.end()
}

// traceAnswer is the content of an answer to opTrace: a reason why there is no Tracing, or the rest.
type traceAnswer struct {
	handle     uint32 // 0 for none
	eventBytes uint32 // 0 if threads are not followed
	disks      bool
	reason     string
	lacks      bpf.Refusals
}

func (a *traceAnswer) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, a.handle)
	b = binary.LittleEndian.AppendUint32(b, a.eventBytes)
	b = append(b, bits(a.disks))
	if a.handle == 0 {
		return appendText(b, a.reason)
	}
	for _, one := range a.lacks {
		b = appendText(appendText(b, one.What), one.Why.Error())
	}
	return b
}

func (a *traceAnswer) parse(body []byte) error {
	d := decoder{rest: body}
	a.handle, a.eventBytes, a.disks = d.uint32(), d.uint32(), d.flags(1) != 0
	d.bad = d.bad || a.eventBytes > 1<<30 || a.handle == 0 && (a.eventBytes > 0 || a.disks)
	if a.handle == 0 {
		a.reason = d.text()
		return d.end()
	}
	for len(d.rest) > 0 && !d.bad {
		a.lacks = append(a.lacks, bpf.Refusal{What: d.text(), Why: errors.New(d.text())})
	}
	return d.end()
}

// descriptors is how many go with the answer.
func (a *traceAnswer) descriptors() (n int) {
	if a.eventBytes > 0 {
		n += 2
	}
	if a.disks {
		n += 2
	}
	return n
}

func appendText(b []byte, text string) []byte {
	text = text[:min(len(text), maxReason)]
	return append(binary.LittleEndian.AppendUint16(b, uint16(len(text))), text...)
}

// text takes one that is not empty.
func (d *decoder) text() string {
	n := int(d.uint16())
	d.bad = d.bad || n == 0 || n > maxReason
	if d.bad {
		return ""
	}
	return string(d.take(n))
}

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
	var q traceQuestion
	if err := q.parse(frame); err != nil {
		return err
	}
	if q.op != opTrace {
		return s.send(appendErrno(header(nil, q.op, q.number), number(s.do(&q))), nil)
	}
	handle, ok := s.reserve()
	if !ok {
		a := traceAnswer{reason: "too many programs are loaded"}
		return s.send(a.append(header(nil, q.op, q.number)), nil)
	}
	s.loading.Go(func() { // it ends with the process
		a, descriptors := s.trace(handle, q.want)
		_ = s.send(a.append(header(nil, q.op, q.number)), descriptors) // without an agent, the next question fails, too
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
func (s *tracings) trace(handle uint32, want bpf.Wanted) (a traceAnswer, descriptors []int) {
	t, err := s.open(want)
	debug.FreeOSMemory() // the kernel's types take 30 MB while programs are loaded
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		delete(s.held, handle)
		return traceAnswer{reason: err.Error()}, nil
	}
	s.held[handle] = t
	memory := t.Memory()
	if memory.EventBytes > 0 {
		descriptors = append(descriptors, memory.Events, memory.Counters)
	}
	if memory.Disks {
		descriptors = append(descriptors, memory.Cells, memory.Directory)
	}
	return traceAnswer{handle, uint32(memory.EventBytes), memory.Disks, "", t.Lacks()}, descriptors
}

// do answers the other questions.
func (s *tracings) do(q *traceQuestion) error {
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
