//go:build linux

package pipeline

import (
	"errors"

	"golang.org/x/sys/unix"
)

// ringReader keeps several reads in flight and returns the records in the order in which they were begun.
type ringReader struct {
	files   *openFiles
	ring    *ring
	memory  *slots
	flights []flight // a ring: first is the oldest of n that were begun
	first   int
	n       int
	most    int
}

// flight is one record in flight.
type flight struct {
	slot    []byte
	at      place
	from    int64
	length  int // whole blocks
	skip    int
	size    int
	done    int
	landed  bool
	problem error
}

func newRing(f *openFiles, size, keep, depth int) (*ringReader, error) {
	k, err := newKernelRing(depth)
	if err != nil {
		return nil, err
	}
	memory, err := newSlots(size, keep+depth)
	if err != nil {
		return nil, errors.Join(err, k.close())
	}
	return &ringReader{files: f, ring: k, memory: memory, flights: make([]flight, depth), most: depth}, nil
}

func (r *ringReader) depth() int { return r.most }

func (r *ringReader) begin(at place, size int) error {
	i := (r.first + r.n) % r.most
	r.n++
	f := &r.flights[i]
	*f = flight{slot: r.memory.take(), at: at, size: size}
	f.from, f.length, f.skip = aligned(at.offset, size)
	r.send(i)
	return nil
}

func (r *ringReader) send(i int) {
	f := &r.flights[i]
	r.ring.read(r.files.fds[f.at.file], f.slot[f.done:f.length], f.from+int64(f.done), uint64(i))
}

func (r *ringReader) next() ([]byte, error) {
	f := &r.flights[r.first]
	if r.ring.waiting > 0 { // even if the oldest is complete, to keep the others in flight
		if err := r.ring.enter(0); err != nil {
			return nil, err
		}
	}
	for r.take(); !f.landed; r.take() {
		if err := r.ring.enter(1); err != nil {
			return nil, err
		}
	}
	r.first = (r.first + 1) % r.most
	r.n--
	return f.slot[f.skip : f.skip+f.size], f.problem
}

// take collects all completions.
func (r *ringReader) take() {
	for {
		c, ok := r.ring.completed()
		if !ok {
			return
		}
		f := &r.flights[c.user]
		switch errno := unix.Errno(-c.result); {
		case c.result < 0 && (errno == unix.EINTR || errno == unix.EAGAIN):
			r.send(int(c.user))
		case c.result < 0:
			f.landed, f.problem = true, failed(r.files.paths[f.at.file], errno)
		case c.result == 0:
			f.landed, f.problem = true, failed(r.files.paths[f.at.file], nil)
		default:
			f.done += int(c.result)
			if f.landed = f.done >= f.skip+f.size; !f.landed {
				r.send(int(c.user))
			}
		}
	}
}

// close waits for reads in flight, because the kernel writes into memory that is about to be freed.
func (r *ringReader) close() error {
	for range r.n {
		_, _ = r.next()
	}
	return errors.Join(r.ring.close(), r.memory.close())
}
