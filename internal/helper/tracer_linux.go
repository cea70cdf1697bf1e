//go:build amd64 || arm64

package helper

import (
	"errors"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stallspan/stallspan/internal/source/bpf"
)

// loadWait is how long loading programs may take.
const loadWait = 30 * time.Second

// Errors of questions to the tracer.
var (
	errTracerEnded = bpf.Away("the helper that holds the BPF programs has ended and is started again")
	errTracerLate  = bpf.Away("the helper that holds the BPF programs does not respond")
	errTracerGone  = errors.New("the helper that holds the BPF programs is gone: restart the agent")
)

// Tracer asks the helper that holds the BPF programs. It is safe for concurrent use.
type Tracer struct {
	reap func() // waits for the keeper, which ends with the connection; nil for none

	mu     sync.Mutex
	fd     int
	number uint32 // of the newest question
	life   uint64 // counts the helpers that have ended
	away   error  // why no helper answers; nil if one does
	buf    [maxAnswer + 1]byte
	rights [64]byte
}

// newTracer asks over a socket, whose helper has greeted.
func newTracer(fd int) *Tracer { return &Tracer{fd: fd} }

// Close ends the helper.
func (t *Tracer) Close() error {
	t.mu.Lock()
	err := unix.Close(t.fd)
	t.fd, t.away = -1, errTracerGone
	t.mu.Unlock()
	if t.reap != nil {
		t.reap()
	}
	return err
}

// Open implements bpf.Opener.
func (t *Tracer) Open(want bpf.Wanted) (bpf.Tracing, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	body, descriptors, err := t.ask(&traceQuestion{op: opTrace, want: want}, loadWait)
	if err != nil {
		return nil, err
	}
	var a traceAnswer
	err = a.parse(body)
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
			tracer: t, life: t.life, handle: a.handle, descriptors: descriptors, memory: memory, lacks: a.lacks,
		}, nil
	default:
		err = errFrame
	}
	closeAll(descriptors)
	return nil, err
}

// ask sends a question and returns the content of its answer. The caller holds t.mu.
func (t *Tracer) ask(q *traceQuestion, wait time.Duration) (body []byte, descriptors []int, err error) {
	if err := t.catchUp(); err != nil {
		return nil, nil, err
	}
	t.number++
	q.number = t.number
	limit := unix.NsecToTimeval(int64(wait))
	if err := unix.SetsockoptTimeval(t.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
		return nil, nil, err
	}
	if err := unix.Sendto(t.fd, q.append(nil), unix.MSG_NOSIGNAL, nil); err != nil {
		t.away = errTracerGone
		return nil, nil, t.away
	}
	until := time.Now().Add(wait)
	for time.Now().Before(until) {
		o, number, body, descriptors, err := t.receive(0)
		switch {
		case errors.Is(err, unix.EAGAIN):
			return nil, nil, errTracerLate
		case err != nil:
			return nil, nil, err
		case t.away != nil:
			return nil, nil, t.away
		case number == q.number && o == q.op:
			return body, descriptors, nil
		}
		closeAll(descriptors) // of a question that was given up
	}
	return nil, nil, errTracerLate
}

// catchUp takes frames that have come without a question: of the end and the start of a helper, and late answers.
func (t *Tracer) catchUp() error {
	for !errors.Is(t.away, errTracerGone) {
		_, _, _, descriptors, err := t.receive(unix.MSG_DONTWAIT)
		closeAll(descriptors)
		if errors.Is(err, unix.EAGAIN) {
			break
		} else if err != nil {
			return err
		}
	}
	return t.away
}

// receive takes one frame. The error is EAGAIN if none comes.
func (t *Tracer) receive(flags int) (o op, number uint32, body []byte, descriptors []int, err error) {
	n, control, _, _, err := unix.Recvmsg(t.fd, t.buf[:], t.rights[:], flags|unix.MSG_CMSG_CLOEXEC)
	for errors.Is(err, unix.EINTR) {
		n, control, _, _, err = unix.Recvmsg(t.fd, t.buf[:], t.rights[:], flags|unix.MSG_CMSG_CLOEXEC)
	}
	if errors.Is(err, unix.EAGAIN) {
		return 0, 0, nil, nil, err
	}
	descriptors = rightsIn(t.rights[:max(control, 0)])
	if err == nil {
		o, number, body, err = split(t.buf[:n])
	}
	if err != nil { // the connection has ended, or what this helper says has no meaning
		closeAll(descriptors)
		t.away = errTracerGone
		return 0, 0, nil, nil, t.away
	}
	switch o {
	case opHello:
		t.away = nil
	case opEnded:
		t.away = errTracerEnded
		t.life++
	}
	return o, number, slices.Clone(body), descriptors, nil
}

func rightsIn(control []byte) (descriptors []int) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil
	}
	for i := range messages {
		if list, err := unix.ParseUnixRights(&messages[i]); err == nil {
			descriptors = append(descriptors, list...)
		}
	}
	return descriptors
}

func closeAll(descriptors []int) {
	for _, fd := range descriptors {
		_ = unix.Close(fd)
	}
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
	t.tracer.mu.Lock()
	defer t.tracer.mu.Unlock()
	if t.life != t.tracer.life {
		return errTracerEnded
	}
	q.handle = t.handle
	body, descriptors, err := t.tracer.ask(q, answerWait)
	closeAll(descriptors) // such answers have none
	if err != nil {
		return err
	}
	d := decoder{rest: body}
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

// Ended implements bpf.Tracing.
func (t *traced) Ended() error {
	t.tracer.mu.Lock()
	defer t.tracer.mu.Unlock()
	if err := t.tracer.catchUp(); err != nil {
		return err
	}
	if t.life != t.tracer.life {
		return errTracerEnded
	}
	return nil
}

// Close ends this tracing.
func (t *traced) Close() error {
	err := t.ask(&traceQuestion{op: opUntrace})
	closeAll(t.descriptors)
	t.descriptors = nil
	if errors.Is(err, errTracerEnded) || errors.Is(err, errTracerGone) || errors.Is(err, syscall.EBADF) {
		return nil // it ended with its helper
	}
	return err
}
