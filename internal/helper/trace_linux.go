//go:build amd64 || arm64

package helper

import (
	"encoding/binary"
	"errors"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/stallspan/stallspan/internal/source/latency"
	"github.com/stallspan/stallspan/internal/source/schedule"
)

// Bounds of the tracer's questions and answers.
const (
	maxTracings = 2    // at a time: one may be opened while the source still holds the one before
	maxAdopted  = 1024 // processes of a question
	maxReason   = 512  // bytes of an answer's text
)

// traceQuestion is a parsed question to the tracer.
type traceQuestion struct {
	op               op
	number           uint32
	handle           uint32
	slot, generation uint32
	pids             []int
}

// append adds the frame of a question.
func (q *traceQuestion) append(b []byte) []byte {
	b = header(b, q.op, q.number)
	if q.op == opTrace || q.op == opUnmeasure {
		return b
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
	case opTrace, opUnmeasure:
		return d.end()
	case opJob, opAdopt, opFlush, opReport, opUntrace, opMeasure:
	default:
		return errFrame
	}
	q.handle = d.uint32()
	if q.op == opJob || q.op == opAdopt {
		q.slot, q.generation = d.uint32(), d.uint32()
		d.bad = d.bad || q.slot == 0 || q.slot > schedule.MaxJobs
	}
	if q.op == opAdopt {
		d.bad = d.bad || len(d.rest) == 0 || len(d.rest) > 4*maxAdopted
		for len(d.rest) > 0 && !d.bad {
			q.pids = append(q.pids, d.pid())
		}
	}
	return d.end()
}

// traceAnswer is the content of an answer to opTrace and opMeasure: a reason why nothing was loaded, or the rest.
type traceAnswer struct {
	handle     uint32
	eventBytes uint32
	reason     string
	lacks      []string
}

// between stands between texts of what is lacking.
const between = "; "

func (a *traceAnswer) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, a.handle)
	b = binary.LittleEndian.AppendUint32(b, a.eventBytes)
	text := a.reason
	if a.eventBytes > 0 {
		text = strings.Join(a.lacks, between)
	}
	return append(b, text[:min(len(text), maxReason)]...)
}

func (a *traceAnswer) parse(body []byte) error {
	d := decoder{rest: body}
	a.handle, a.eventBytes = d.uint32(), d.uint32()
	if d.bad || len(d.rest) > maxReason || a.eventBytes == 0 && len(d.rest) == 0 || a.eventBytes > 1<<30 {
		return errFrame
	}
	switch text := string(d.rest); {
	case a.eventBytes == 0:
		a.reason = text
	case text != "":
		a.lacks = strings.Split(text, between)
	}
	return nil
}

// tracings answers the questions to the tracer.
type tracings struct {
	open  schedule.Opener
	held  map[uint32]schedule.Tracing // by handle
	newst uint32                      // handle
	frame []byte

	measure  latency.Opener
	measured latency.Tracing // nil for none
}

func serveTracing(fd int) error {
	return serve(fd, &tracings{
		open: schedule.Local("/"), measure: latency.Local("/"), held: map[uint32]schedule.Tracing{},
	})
}

func (s *tracings) answer(frame []byte) ([]byte, []int, error) {
	var q traceQuestion
	if err := q.parse(frame); err != nil {
		return nil, nil, err
	}
	b := header(s.frame[:0], q.op, q.number)
	var descriptors []int
	var a traceAnswer
	switch q.op {
	case opTrace:
		a, descriptors = s.trace()
		b = a.append(b)
	case opMeasure:
		a, descriptors = s.count(q.handle)
		b = a.append(b)
	default:
		b = appendErrno(b, number(s.do(&q)))
	}
	s.frame = b
	return b, descriptors, nil
}

// trace loads programs.
func (s *tracings) trace() (a traceAnswer, descriptors []int) {
	if len(s.held) >= maxTracings {
		return traceAnswer{reason: "too many programs follow the scheduler"}, nil
	}
	t, err := s.open()
	debug.FreeOSMemory() // the kernel's types take 30 MB while programs are loaded
	if err != nil {
		return traceAnswer{reason: err.Error()}, nil
	}
	s.newst++
	s.held[s.newst] = t
	memory := t.Memory()
	a = traceAnswer{handle: s.newst, eventBytes: uint32(memory.EventBytes), lacks: t.Lacks()}
	return a, []int{memory.Events, memory.Counters}
}

// count loads the programs that count how long disks take. There is one set of them at a time: the agent has one
// source, and asks again only after that has ended.
func (s *tracings) count(handle uint32) (a traceAnswer, descriptors []int) {
	with := s.held[handle]
	if s.measured != nil {
		return traceAnswer{reason: "the time of disks is counted already"}, nil
	}
	if handle != 0 && with == nil {
		return traceAnswer{reason: "the scheduler is not followed any more"}, nil
	}
	t, err := s.measure(with)
	debug.FreeOSMemory() // as in trace
	if err != nil {
		return traceAnswer{reason: err.Error()}, nil
	}
	s.measured = t
	memory := t.Memory()
	return traceAnswer{eventBytes: latencyBytes, lacks: t.Lacks()}, []int{memory.Cells, memory.Directory}
}

// latencyBytes stands for success in an answer to opMeasure, whose maps have one size.
const latencyBytes = 1

// do answers the other questions.
func (s *tracings) do(q *traceQuestion) error {
	if q.op == opUnmeasure {
		if s.measured == nil {
			return syscall.EBADF
		}
		t := s.measured
		s.measured = nil
		return t.Close()
	}
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
