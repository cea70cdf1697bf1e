//go:build linux

package pipeline

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// A reader reads records in the order in which they were begun. One thread owns it.
type reader interface {
	// begin starts reading a record of size bytes. At most depth reads may be in flight.
	begin(at place, size int) error
	// next waits for the oldest record that was begun. Its bytes stay valid for keep further calls of next.
	next() ([]byte, error)
	depth() int
	close() error
}

// newReader returns a reader for records of at most size bytes; keep of them stay valid together.
func newReader(f *openFiles, r Reading, size, keep, depth int) (reader, error) {
	switch r {
	case Buffered, Direct:
		memory, err := newSlots(size, keep)
		if err != nil {
			return nil, err
		}
		return &plain{files: f, memory: memory, direct: r == Direct}, nil
	case Mapped:
		debug.SetPanicOnFault(true) // of this goroutine: a fault in a mapped page is an error instead of a crash
		return &mapped{files: f}, nil
	case Uring:
		return newRing(f, size, keep, max(depth, 1))
	}
	return nil, fmt.Errorf("unknown reading %q: it is one of %q, %q, %q and %q", r, Buffered, Mapped, Direct, Uring)
}

// slots is aligned memory for records, used in turn.
type slots struct {
	all  []byte
	size int
	turn int
}

func newSlots(size, n int) (*slots, error) {
	size = (size+block-1)/block*block + block // a record may begin and end inside a block
	all, err := unix.Mmap(-1, 0, size*n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("no memory for %d records of %d bytes: %w", n, size, err)
	}
	return &slots{all: all, size: size}, nil
}

func (s *slots) take() []byte {
	begin := s.turn * s.size
	s.turn = (s.turn + 1) % (len(s.all) / s.size)
	return s.all[begin : begin+s.size : begin+s.size]
}

func (s *slots) close() error { return unix.Munmap(s.all) }

// aligned returns the whole blocks around size bytes at offset, and the position of these bytes in the blocks.
func aligned(offset int64, size int) (from int64, length, skip int) {
	from = offset / block * block
	skip = int(offset - from)
	return from, (skip + size + block - 1) / block * block, skip
}

// plain calls pread(2) in next, for one record at a time.
type plain struct {
	files  *openFiles
	memory *slots
	direct bool
	at     place
	size   int
}

func (*plain) depth() int     { return 1 }
func (p *plain) close() error { return p.memory.close() }

func (p *plain) begin(at place, size int) error {
	p.at, p.size = at, size
	return nil
}

func (p *plain) next() ([]byte, error) {
	from, length, skip := p.at.offset, p.size, 0
	if p.direct {
		from, length, skip = aligned(p.at.offset, p.size)
	}
	slot := p.memory.take()
	for done := 0; done < skip+p.size; {
		n, err := retry(func() (int, error) {
			return unix.Pread(p.files.fds[p.at.file], slot[done:length], from+int64(done))
		})
		if err != nil || n == 0 {
			return nil, failed(p.files.paths[p.at.file], err)
		}
		done += n
	}
	return slot[skip : skip+p.size], nil
}

// failed adds the file's name to an error. A nil error means that the file has become shorter.
func failed(path string, err error) error {
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return &os.PathError{Op: "read", Path: path, Err: err}
}

// mapped touches each page of a record in next, one record at a time.
type mapped struct {
	files *openFiles
	at    place
	size  int
	sink  byte
}

func (*mapped) depth() int   { return 1 }
func (*mapped) close() error { return nil }

func (m *mapped) begin(at place, size int) error {
	m.at, m.size = at, size
	return nil
}

// fault is the panic value of Go for an unreadable page.
type fault interface {
	error
	Addr() uintptr
}

func (m *mapped) next() (record []byte, err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case fault:
			record, err = nil, failed(m.files.paths[m.at.file], unix.EIO)
		default:
			panic(r)
		}
	}()
	record = m.files.mapped[m.at.file][m.at.offset:][:m.size:m.size]
	for i := 0; i < m.size; i += pageSize {
		m.sink += record[i]
	}
	if m.size > 0 {
		m.sink += record[m.size-1]
	}
	return record, nil
}
