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
	b := header(s.frame[:0], q.op, q.number)
	switch q.op {
	case opBytes:
		list := s.answers[:len(q.keys)]
		if err := s.reader.Bytes(q.keys, list); err != nil {
			return nil, err
		}
		b = appendBytes(b, list)
	case opFiles:
		list, files, err := s.reader.Files(q.keys[0], q.from, q.limit)
		b = appendFiles(b, list, files, number(err))
	case opSame:
		same, err := s.reader.SameProgram(q.keys[0], q.keys[1])
		b = appendSame(b, same, number(err))
	case opModels:
		all, err := s.reader.ModelFiles(q.keys[0], q.models)
		b = appendModels(b, all, number(err))
	case opDevice:
		open, files, err := s.reader.HasDevice(q.keys[0], q.device)
		b = appendDevice(b, open, files, number(err))
	}
	s.frame = b
	return b, nil
}

// number returns the number of an error, 0 for none.
func number(err error) syscall.Errno {
	var n syscall.Errno
	if err != nil && !errors.As(err, &n) {
		return syscall.EIO
	}
	return n
}
