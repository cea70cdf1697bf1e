//go:build amd64 || arm64

package helper

import (
	"encoding/binary"
	"errors"
	"runtime/debug"
	"syscall"

	"github.com/stallspan/stallspan/internal/source/bpf"
)

// Bounds of the tracer's questions and answers.
const (
	maxTracings = 2    // at a time: one may be opened while the source still holds the one before
	maxAdopted  = 1024 // processes of a question
	maxReason   = 512  // bytes of a text in an answer
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
	open  bpf.Opener
	held  map[uint32]bpf.Tracing // by handle
	newst uint32                 // handle
	frame []byte
}

func serveTracing(fd int) error {
	return serve(fd, &tracings{open: bpf.Local("/"), held: map[uint32]bpf.Tracing{}})
}

func (s *tracings) answer(frame []byte) ([]byte, []int, error) {
	var q traceQuestion
	if err := q.parse(frame); err != nil {
		return nil, nil, err
	}
	b := header(s.frame[:0], q.op, q.number)
	var descriptors []int
	if q.op == opTrace {
		var a traceAnswer
		a, descriptors = s.trace(q.want)
		b = a.append(b)
	} else {
		b = appendErrno(b, number(s.do(&q)))
	}
	s.frame = b
	return b, descriptors, nil
}

// trace loads programs.
func (s *tracings) trace(want bpf.Wanted) (a traceAnswer, descriptors []int) {
	if len(s.held) >= maxTracings {
		return traceAnswer{reason: "too many programs are loaded"}, nil
	}
	t, err := s.open(want)
	debug.FreeOSMemory() // the kernel's types take 30 MB while programs are loaded
	if err != nil {
		return traceAnswer{reason: err.Error()}, nil
	}
	s.newst++
	s.held[s.newst] = t
	memory := t.Memory()
	if memory.EventBytes > 0 {
		descriptors = append(descriptors, memory.Events, memory.Counters)
	}
	if memory.Disks {
		descriptors = append(descriptors, memory.Cells, memory.Directory)
	}
	return traceAnswer{s.newst, uint32(memory.EventBytes), memory.Disks, "", t.Lacks()}, descriptors
}

// do answers the other questions.
func (s *tracings) do(q *traceQuestion) error {
	t := s.held[q.handle]
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
		delete(s.held, q.handle)
		return t.Close()
	}
	return errors.ErrUnsupported // parse refuses other questions
}
