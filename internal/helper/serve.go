package helper

import (
	"errors"
	"syscall"

	"github.com/stallspan/stallspan/internal/source/process"
)

// server answers questions.
type server struct {
	reader   process.Reader
	question question
	answers  [maxKeys]process.Bytes
	frame    []byte
}

// answer returns the frame that answers one. It is valid until the next call.
func (s *server) answer(frame []byte) ([]byte, error) {
	q := &s.question
	if err := q.parse(frame); err != nil {
		return nil, err
	}
	var a content
	var err error
	switch q.op {
	case opBytes:
		a.bytes = s.answers[:len(q.keys)]
		if err := s.reader.Bytes(q.keys, a.bytes); err != nil {
			return nil, err
		}
	case opFiles:
		a.open, a.files, err = s.reader.Files(q.keys[0], q.from, q.limit)
	case opSame:
		a.yes, err = s.reader.SameProgram(q.keys[0], q.keys[1])
	case opModels:
		a.models, err = s.reader.ModelFiles(q.keys[0], q.models)
		a.models.List = ofModels(a.models.List)
	case opDevice:
		a.yes, a.files, err = s.reader.HasDevice(q.keys[0], q.device)
	default:
		return nil, errFrame
	}
	a.failed = number(err)
	s.frame = a.append(header(s.frame[:0], q.op, q.number), q.op)
	return s.frame, nil
}

// number returns the number of an error, 0 for none.
func number(err error) syscall.Errno {
	var n syscall.Errno
	if err != nil && !errors.As(err, &n) {
		return syscall.EIO
	}
	return n
}
